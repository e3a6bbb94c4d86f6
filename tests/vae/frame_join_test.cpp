// Joining chunks against the formulas of spec/vae.md 10.3, in one range and in ranges whose tails come late.
#include "vae/frame_join.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace h3 {
namespace {

constexpr std::int64_t kChannels = 3, kHeight = 2, kWidth = 3;
constexpr std::int64_t kFrame = kHeight * kWidth;

using Values = std::vector<float>;
// By clip frame: [channels, height, width].
using Frames = std::map<std::int64_t, Values>;

TemporalGrid grid() {
  return temporal_grid(released_model_config().video_vae);
}

class Chunks {
 public:
  explicit Chunks(const ChunkPlan& plan) : plan_(plan), values_(static_cast<std::size_t>(plan.chunks)) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (Values& c : values_) {
      c.resize(static_cast<std::size_t>(kChannels * plan.decoded * kFrame));
      for (float& v : c) v = normal(random);
    }
  }
  float at(std::int64_t c, std::int64_t channel, std::int64_t frame, std::int64_t i) const {
    return values_[static_cast<std::size_t>(c)]
                  [static_cast<std::size_t>((channel * plan_.decoded + frame) * kFrame + i)];
  }
  Values copy(std::int64_t c) const { return values_[static_cast<std::size_t>(c)]; }
  void fill(std::int64_t c, float v) {
    std::fill(values_[static_cast<std::size_t>(c)].begin(), values_[static_cast<std::size_t>(c)].end(), v);
  }

 private:
  ChunkPlan plan_;
  std::vector<Values> values_;
};

// Joins chunks in ranges that start at `starts`; ranges after the first get their tail at the end.
Frames joined(const ChunkPlan& plan, const Chunks& chunks, const std::vector<std::int64_t>& starts) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  Frames frames;
  const auto emit = [&](Queue&, std::int64_t first, const Tensor& t) {
    ASSERT_EQ(t.size(0), kChannels);
    for (std::int64_t f = 0; f < t.size(1); ++f) {
      Values& frame = frames[first + f];
      EXPECT_TRUE(frame.empty()) << "frame " << first + f << " twice";
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const float* from = t.as<float>() + c * t.stride(0) + f * t.stride(1);
        frame.insert(frame.end(), from, from + kFrame);
      }
    }
  };
  std::vector<std::unique_ptr<FrameJoiner>> joiners;
  std::int64_t made = 0, dropped = 0;
  for (std::size_t r = 0; r < starts.size(); ++r) {
    joiners.push_back(std::make_unique<FrameJoiner>(*machine, plan, kChannels, kHeight, kWidth, emit));
    const std::int64_t end = r + 1 < starts.size() ? starts[r + 1] : plan.chunks;
    for (std::int64_t c = starts[r]; c < end; ++c) {
      Values chunk = chunks.copy(c);
      joiners[r]->add(*q, c, Tensor(chunk.data(), {kChannels, plan.decoded, kHeight, kWidth}, DType::f32));
      std::fill(chunk.begin(), chunk.end(), NAN);
    }
  }
  for (std::size_t r = starts.size(); r-- > 1;) {
    machine->copy(*q, joiners[r - 1]->tail(), joiners[r]->earlier_tail());
    joiners[r]->join(*q);
  }
  for (const auto& j : joiners) {
    made += j->made();
    dropped += j->dropped();
  }
  EXPECT_EQ(made, plan.frames + plan.dropped);
  EXPECT_EQ(dropped, plan.dropped);
  EXPECT_EQ(static_cast<std::int64_t>(frames.size()), plan.frames);
  return frames;
}

float expected(const ChunkPlan& plan, const Chunks& chunks, std::int64_t frame, std::int64_t channel, std::int64_t i) {
  const std::int64_t c = frame / 17, j = frame % 17;
  if (c == plan.chunks) return chunks.at(c - 1, channel, 23 + j, i);
  const float head = chunks.at(c, channel, 3 + j, i);
  if (c == 0 || j >= 5) return head;
  const float b = static_cast<float>(j) / 5.0f, a = 1.0f - b;
  const float first = chunks.at(c - 1, channel, 23 + j, i) * a, second = head * b;
  return first + second;
}

TEST(FrameJoin, FollowsTheDefinition) {
  for (const std::int64_t tokens : {2, 3, 7, 8, 12, 13, 22, 27}) {
    const ChunkPlan plan = plan_chunks(grid(), tokens);
    const Chunks chunks(plan);
    const Frames frames = joined(plan, chunks, {0});
    for (const auto& [frame, values] : frames)
      for (std::int64_t c = 0; c < kChannels; ++c)
        for (std::int64_t i = 0; i < kFrame; ++i)
          ASSERT_EQ(values[static_cast<std::size_t>(c * kFrame + i)], expected(plan, chunks, frame, c, i))
              << tokens << " tokens, frame " << frame;
  }
}

TEST(FrameJoin, ConstantsFade) {
  const ChunkPlan plan = plan_chunks(grid(), 17);
  Chunks chunks(plan);
  for (std::int64_t c = 0; c < plan.chunks; ++c) chunks.fill(c, static_cast<float>(c));
  const Frames frames = joined(plan, chunks, {0});
  EXPECT_EQ(frames.at(17)[0], 0.0f) << "the first frame of a seam is the older tail";
  EXPECT_EQ(frames.at(19)[0], 0.4f);
  EXPECT_EQ(frames.at(35)[0], 1.0f * 0.8f + 2.0f * 0.2f);
  EXPECT_EQ(frames.at(40)[0], 2.0f);
}

TEST(FrameJoin, RangesGiveTheSameBits) {
  const ChunkPlan plan = plan_chunks(grid(), 26);  // five chunks, the last one padded
  const Chunks chunks(plan);
  const Frames whole = joined(plan, chunks, {0});
  for (const auto& starts : {std::vector<std::int64_t>{0, 1}, {0, 2, 3}, {0, 1, 2, 3, 4}, {0, 4}})
    EXPECT_EQ(joined(plan, chunks, starts), whole);
}

TEST(FrameJoin, OneFrame) {
  const ChunkPlan plan = plan_chunks(grid(), 1);
  const Chunks chunks(plan);
  const Frames frames = joined(plan, chunks, {0});
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames.at(0)[4], chunks.at(0, 0, 3, 4));
}

}  // namespace
}  // namespace h3
