#include "compute/machine.h"

#include "random_tensors.h"

namespace h3::test {
namespace {

using MachineTest = CpuOperatorTest;

TEST_F(MachineTest, DescribesItself) {
  EXPECT_EQ(machine_->backend(), "cpu");
  EXPECT_FALSE(machine_->name().empty());
  EXPECT_FALSE(machine_->capability().empty());
  EXPECT_NE(machine_->library_versions().find("glibc"), std::string::npos);
  EXPECT_GT(machine_->free_memory(), 0u);
  EXPECT_LE(machine_->free_memory(), machine_->total_memory());
  EXPECT_EQ(machine_->place(), Place::host);
}

TEST_F(MachineTest, AllocatesAlignedMemoryOfAnySize) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{257}, std::size_t{100000}}) {
    void* data = machine_->allocate(bytes, Place::host);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0u);
    machine_->release(data, Place::host);
  }
  EXPECT_ANY_THROW(machine_->allocate(1, Place::device));
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program at such a request
  EXPECT_THROW(machine_->allocate(std::size_t{1} << 60, Place::host), RunError);
#endif
}

TEST_F(MachineTest, CopiesContiguousTensors) {
  const OwnedTensor x = random_tensor({4, 6}, DType::bf16, 1), y = poisoned_tensor({24}, DType::bf16);
  machine_->copy(q_, x, y);
  expect_same_bits(y->reshape({4, 6}), x);
  EXPECT_ANY_THROW(machine_->copy(q_, x, poisoned_tensor({23}, DType::bf16)));
  EXPECT_ANY_THROW(machine_->copy(q_, x, poisoned_tensor({24}, DType::f32)));
  EXPECT_ANY_THROW(machine_->copy(q_, x->slice(1, 0, 3), poisoned_tensor({4, 3}, DType::bf16)));
}

TEST_F(MachineTest, QueuesRunAtOnce) {
  const std::unique_ptr<Queue> other = machine_->make_queue();
  q_.wait_for(*other);
  q_.wait();
}

TEST_F(MachineTest, ArenaCarvesInStackOrderAndPlansWithoutMemory) {
  Arena arena(*machine_, 4096);
  const Tensor a = arena.take({3, 5}, DType::f32);
  const std::size_t mark = arena.mark();
  const Tensor b = arena.take({100}, DType::bf16);
  EXPECT_EQ(static_cast<char*>(b.data) - static_cast<char*>(a.data), 256);
  arena.rewind(mark);
  EXPECT_EQ(arena.take({7}, DType::f32).data, b.data);
  EXPECT_ANY_THROW(arena.take({2000}, DType::f32));
  Arena plan;
  EXPECT_EQ(plan.take({3, 5}, DType::f32).data, nullptr);
  plan.take({100}, DType::bf16);
  EXPECT_EQ(plan.peak(), 456u);
}

}  // namespace
}  // namespace h3::test
