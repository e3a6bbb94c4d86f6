#include "vae/frame_handover.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"

namespace h3::test {
namespace {

constexpr std::int64_t kFrames = 2;

class FrameHandoverTest : public ::testing::Test {
 protected:
  // A batch whose values are all its number.
  void push(FrameHandover& handover, int batch) {
    for (std::uint8_t& v : pixels_) v = static_cast<std::uint8_t>(batch);
    handover.push(*q_, batch * kFrames, Tensor(pixels_.data(), {kFrames, 2, 2, 3}, DType::u8));
  }

  std::unique_ptr<Machine> machine_ = make_cpu_machine();
  std::unique_ptr<Queue> q_ = machine_->make_queue();
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(kFrames * 12);
};

TEST_F(FrameHandoverTest, HandsFramesOverInOrderOnAThreadOfItsOwn) {
  std::vector<int> seen;
  const auto here = std::this_thread::get_id();
  FrameHandover handover(*machine_, [&](std::int64_t first, const Tensor& frames) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_NE(std::this_thread::get_id(), here);
    EXPECT_EQ(first, static_cast<std::int64_t>(seen.size()) * kFrames);
    seen.push_back(frames.as<std::uint8_t>()[frames.elements() - 1]);
  });
  for (int i = 0; i < 20; ++i) push(handover, i);
  handover.release(*q_);
  handover.finish();
  ASSERT_EQ(seen.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(handover.written(), 20 * kFrames);
  EXPECT_EQ(handover.failure(), "");
}

TEST_F(FrameHandoverTest, NoMoreBatchesThanItsMemoryHolds) {
  std::atomic<int> taken = 0;
  std::atomic<bool> go = false;
  FrameHandover handover(*machine_, [&](std::int64_t, const Tensor&) {
    while (!go) std::this_thread::yield();
    ++taken;
  });
  std::atomic<int> pushed = 0;
  std::thread bringer([&] {
    for (int i = 0; i < 8; ++i) {
      push(handover, i);
      ++pushed;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(pushed, static_cast<int>(FrameHandover::kBatches));
  go = true;
  bringer.join();
  handover.finish();
  EXPECT_EQ(taken, 8);
}

TEST_F(FrameHandoverTest, KeepsAWriterFailureAndGoesOnWithoutTheSink) {
  int calls = 0;
  FrameHandover handover(*machine_, [&](std::int64_t, const Tensor&) {
    if (++calls == 2) throw SceneError("no space left");
  });
  for (int i = 0; i < 6; ++i) push(handover, i);
  handover.finish();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(handover.failure(), "no space left");
  EXPECT_EQ(handover.written(), 6 * kFrames);
}

TEST_F(FrameHandoverTest, OtherErrorsComeBackToTheOwner) {
  FrameHandover handover(*machine_, [](std::int64_t, const Tensor&) { throw RunError("broken"); });
  for (int i = 0; i < 6; ++i) push(handover, i);
  EXPECT_THROW(handover.finish(), RunError);
}

TEST_F(FrameHandoverTest, GapsAreRefusedAndNoSinkIsFine) {
  FrameHandover handover(*machine_, {});
  push(handover, 0);
  EXPECT_ANY_THROW(push(handover, 2));
  handover.finish();
  EXPECT_EQ(handover.written(), kFrames);
}

}  // namespace
}  // namespace h3::test
