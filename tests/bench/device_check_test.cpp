// The self-test of a machine: on the CPU all slices agree, and operators that depend on the size of a call are found
// out.
#include "bench/device_check.h"

#include <gtest/gtest.h>

#include "compute/cpu/cpu_operators.h"
#include "weights/model_folder.h"

namespace h3::test {

namespace {

constexpr DeviceCheckSizes kLittle{131, 8, 2, 4};

ModelConfig nano() {
  return open_model(std::string("synthetic:1:") + H3RENDER_SOURCE_DIR + "/jobs/nano").config();
}

// Results of a call with an odd number of rows are off in one bit.
class RowCounting : public CpuOperators {
 public:
  void linear(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& y) override {
    CpuOperators::linear(q, x, w, y);
    if (x.size(0) % 2 == 1 && x.size(0) < kLittle.rows) y.as<unsigned char>()[0] ^= 1;
  }
};

class OddMachine : public Machine {
 public:
  std::string name() const override { return "odd"; }
  std::string backend() const override { return cpu_->backend(); }
  std::string capability() const override { return cpu_->capability(); }
  std::string library_versions() const override { return cpu_->library_versions(); }
  Place place() const override { return cpu_->place(); }
  std::size_t free_memory() const override { return cpu_->free_memory(); }
  std::size_t total_memory() const override { return cpu_->total_memory(); }
  std::unique_ptr<Queue> make_queue() override { return cpu_->make_queue(); }
  Operators& operators() override { return operators_; }
  void* allocate(std::size_t bytes, Place place) override { return cpu_->allocate(bytes, place); }
  void release(void* data, Place place) override { cpu_->release(data, place); }
  void copy(Queue& queue, const Tensor& from, const Tensor& to) override { cpu_->copy(queue, from, to); }

 private:
  std::unique_ptr<Machine> cpu_ = make_cpu_machine();
  RowCounting operators_;
};

struct Found {
  std::int64_t linear = 0, attention = 0, convolution = 0, slices = 0, linear_different = 0, other_different = 0;
};

Found check(Machine& machine) {
  Found found;
  check_device(machine, nano(), kLittle, [&](const SliceComparison& c) {
    const bool linear = c.what.starts_with("linear");
    found.linear += linear;
    found.attention += c.what.starts_with("attention");
    found.convolution += c.what.starts_with("convolution");
    found.slices += c.slices;
    (linear ? found.linear_different : found.other_different) += c.different;
  });
  return found;
}

}  // namespace

TEST(DeviceCheck, CpuSlicesHaveTheBitsOfTheWhole) {
  const auto cpu = make_cpu_machine();
  const Found found = check(*cpu);
  EXPECT_GT(found.linear, 20);
  EXPECT_EQ(found.attention, 8);
  EXPECT_GT(found.convolution, 1);
  EXPECT_GT(found.slices, 300);
  EXPECT_EQ(found.linear_different, 0);
  EXPECT_EQ(found.other_different, 0);
}

TEST(DeviceCheck, FindsOperatorsThatDependOnTheSizeOfACall) {
  OddMachine machine;
  const Found found = check(machine);
  EXPECT_GT(found.linear_different, 0);
  EXPECT_EQ(found.other_different, 0);
}

}  // namespace h3::test
