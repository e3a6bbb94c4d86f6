// What the operator tests stand on: tensors that own their memory, random or poisoned, with or without gaps between
// rows, and comparisons with a plain double-precision evaluation.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "support/goldens.h"

namespace h3::test {

// A host tensor with memory of its own. `gap` elements lie between rows.
class OwnedTensor {
 public:
  OwnedTensor(Shape shape, DType dtype, std::int64_t gap = 0);
  operator const Tensor&() const { return view_; }
  const Tensor* operator->() const { return &view_; }
  const Tensor& view() const { return view_; }

 private:
  std::vector<std::uint64_t> memory_;
  Tensor view_;
};

// Normal values times `amplitude`, rounded to the dtype; gaps hold NaN.
OwnedTensor random_tensor(Shape shape, DType dtype, unsigned seed, double amplitude = 1.0, std::int64_t gap = 0);
// Every byte 0xff: NaN in the float types.
OwnedTensor poisoned_tensor(Shape shape, DType dtype, std::int64_t gap = 0);
// Given values, rounded to the dtype.
OwnedTensor tensor_of(Shape shape, const std::vector<float>& values, DType dtype = DType::f32);
OwnedTensor index_tensor(const std::vector<std::int32_t>& values);

// A copy of t's values as a contiguous tensor.
OwnedTensor copy_of(const Tensor& t);

std::vector<double> doubles_of(const Tensor& t);

// |actual - expected| <= relative * |expected| + absolute for every value.
void expect_near(const Tensor& actual, const std::vector<double>& expected, double relative, double absolute);
void expect_same_bits(const Tensor& actual, const Tensor& expected);

// Half a unit in the last place, relative, and a little more for float32, where sums round too.
double tolerance_of(DType dtype);

inline const std::vector<DType> kFloatTypes = {DType::f32, DType::bf16, DType::f16};

class CpuOperatorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Machine> machine_ = make_cpu_machine();
  std::unique_ptr<Queue> queue_ = machine_->make_queue();
  Queue& q_ = *queue_;
  Operators& ops_ = machine_->operators();
};

}  // namespace h3::test
