// What the tests of the CUDA operators stand on: tensors that exist on the CPU and on the GPU with the same bits, an
// operator run on both, and comparisons of all the memory behind them, gaps between rows included. Tests are skipped
// where there is no GPU.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compute/cuda/cuda_machine.h"
#include "compute/machine.h"
#include "compute/operators.h"

namespace h3::test {

// One tensor in both memories. Slices and reshapes apply to both and share the memory.
class Twin {
 public:
  Twin() = default;
  Twin(Machine& cpu, Machine& gpu, Shape shape, DType dtype, std::int64_t gap);

  Tensor cpu, gpu;

  Twin rows(std::int64_t begin, std::int64_t end) const { return slice(0, begin, end); }
  Twin slice(int axis, std::int64_t begin, std::int64_t end) const;
  Twin split(int axis, std::int64_t outer) const;
  Twin at(std::int64_t index) const;
  explicit operator bool() const { return static_cast<bool>(cpu); }

  // All the memory that this is a view of.
  Tensor whole_cpu() const { return host_->tensor({static_cast<std::int64_t>(host_->bytes())}, DType::u8); }
  Tensor whole_gpu() const { return device_->tensor({static_cast<std::int64_t>(device_->bytes())}, DType::u8); }

 private:
  std::shared_ptr<Buffer> host_, device_;
};

// Picks a twin's tensor on the side that an operator runs on.
struct Side {
  bool gpu;
  const Tensor& operator()(const Twin& t) const { return gpu ? t.gpu : t.cpu; }
};

class CudaTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  // Uniform values of the given standard deviation; `gap` elements of poison between rows.
  Twin random(Shape shape, DType dtype, double deviation = 1.0, std::int64_t gap = 0);
  // Every byte 0xff: NaN in the float types.
  Twin poisoned(Shape shape, DType dtype, std::int64_t gap = 0);
  Twin copy_of(const Twin& t);  // of a twin without gaps
  Twin values(const std::vector<float>& values);
  Twin indices(std::int64_t n, std::int32_t bound);

  // Runs f(operators, queue, side) on both machines.
  template <typename F>
  void both(const F& f) {
    f(cpu_->operators(), *cpu_queue_, Side{false});
    on_gpu(f);
  }
  // An exception is a failure with the trace of the place that it comes from.
  template <typename F>
  void on_gpu(const F& f) {
    try {
      f(gpu_->operators(), *gpu_queue_, Side{true});
      gpu_queue_->wait();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }

  void upload(const Twin& t);
  // The memory behind the GPU's tensor, read back.
  std::vector<std::uint8_t> download(const Twin& t);
  // Values of the GPU's tensor, contiguous.
  std::vector<std::uint8_t> bytes_of(const Twin& t);

  // Same bits, gaps included; any NaN equals any other.
  void expect_same(const Twin& t);
  // |gpu - cpu| / |cpu| and the largest difference over the tensor; outside it the same bits.
  void expect_close(const Twin& t, double relative_l2, double largest);

  Operators& gpu_operators() { return gpu_->operators(); }

  static std::unique_ptr<Machine> cpu_, gpu_;
  static std::unique_ptr<Queue> cpu_queue_, gpu_queue_;

 private:
  std::uint64_t seed_ = 1;
};

inline const std::vector<DType> kFloatTypes = {DType::f32, DType::bf16, DType::f16};

// Relative L2 distance that one rounding to the dtype here and there makes.
inline double flips(DType dtype) {
  return dtype == DType::f32 ? 1e-6 : dtype == DType::bf16 ? 1e-3 : 2e-4;
}
// A unit in the last place of values near 1.
inline double unit(DType dtype) {
  return dtype == DType::f32 ? 1.2e-7 : dtype == DType::bf16 ? 7.9e-3 : 9.8e-4;
}

}  // namespace h3::test
