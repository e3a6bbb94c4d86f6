// Page-locking beside a run: what is copied while and after pieces are locked, across their ends, and after unlocking.
#include "compute/cuda/page_lock.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "compute/cuda/cuda_machine.h"

namespace h3::test {
namespace {

class PageLocks : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 2 * PageLock::kPiece + (std::size_t{3} << 20);

  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
    gpu_ = make_cuda_machine(0);
    queue_ = gpu_->make_queue();
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = {static_cast<std::byte*>(memory), kBytes};
    for (std::size_t i = 0; i < kBytes; i += 4096) std::memcpy(&memory_[i], &i, sizeof i);
  }
  void TearDown() override {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  }
  void expect_copied() {
    const Shape shape{static_cast<std::int64_t>(kBytes)};
    const Buffer there(*gpu_, kBytes, Place::device);
    std::vector<std::byte> back(kBytes);
    gpu_->copy(*queue_, Tensor(memory_.data(), shape, DType::u8), there.tensor(shape, DType::u8));
    gpu_->copy(*queue_, there.tensor(shape, DType::u8), Tensor(back.data(), shape, DType::u8));
    queue_->wait();
    EXPECT_EQ(std::memcmp(back.data(), memory_.data(), kBytes), 0);
  }

  std::unique_ptr<Machine> gpu_;
  std::unique_ptr<Queue> queue_;
  std::span<std::byte> memory_;
};

TEST_F(PageLocks, CopiesAreTheSameBeforeWhileAndAfter) {
  expect_copied();
  {
    PageLock lock(memory_, {});
    expect_copied();
    const PageLock::Outcome& outcome = lock.wait();
    EXPECT_EQ(outcome.bytes, kBytes);
    EXPECT_EQ(outcome.obstacle, "");
    expect_copied();
  }
  expect_copied();
  PageLock again(memory_, {});
  EXPECT_EQ(again.wait().bytes, kBytes);
}

TEST_F(PageLocks, TellOfWhatTheSystemRefuses) {
  std::string told;
  // Behind the memory there is nothing.
  ::munmap(memory_.data() + PageLock::kPiece * 2, kBytes - PageLock::kPiece * 2);
  PageLock lock(memory_, [&](const PageLock::Outcome& outcome) { told = outcome.obstacle; });
  const PageLock::Outcome& outcome = lock.wait();
  EXPECT_LT(outcome.bytes, kBytes);
  EXPECT_NE(told.find("cudaHostRegister"), std::string::npos) << told;
  EXPECT_EQ(told, outcome.obstacle);
}

}  // namespace
}  // namespace h3::test
