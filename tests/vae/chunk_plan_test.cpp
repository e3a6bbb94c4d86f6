// The temporal plans of spec/vae.md 10.1 and 10.3, against its tables and a simulation.
#include "vae/chunk_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace h3 {
namespace {

TemporalGrid released_grid() {
  return temporal_grid(released_model_config().video_vae);
}

TEST(ChunkPlan, DerivedConstants) {
  const TemporalGrid grid = released_grid();
  EXPECT_EQ(grid.ratio, 4);
  EXPECT_EQ(grid.pre_pad, 3);
  EXPECT_EQ(grid.clip_tokens, 5);
  EXPECT_EQ(grid.token_overlap, 2);
  EXPECT_EQ(grid.frame_overlap, 5);
}

TEST(ChunkPlan, AlignedClips) {
  const TemporalGrid grid = released_grid();
  for (std::int64_t k = 1; k <= 40; ++k) {
    const ChunkPlan plan = plan_chunks(grid, 5 * k + 2);
    EXPECT_EQ(plan.frames, 17 * k + 5);
    EXPECT_EQ(plan.padding, 0);
    EXPECT_EQ(plan.chunks, k);
    EXPECT_EQ(plan.dropped, 0);
    EXPECT_EQ(grid.tokens(17 * k + 5), 5 * k + 2);
  }
}

TEST(ChunkPlan, OtherLengths) {
  const TemporalGrid grid = released_grid();
  // T, P, n, F
  const std::array<std::int64_t, 4> rows[] = {{2, 5, 1, 5},   {3, 4, 1, 9},   {4, 3, 1, 13},    {5, 2, 1, 17},
                                              {6, 1, 1, 18},  {8, 4, 2, 26},  {9, 3, 2, 30},    {10, 2, 2, 34},
                                              {11, 1, 2, 35}, {13, 4, 3, 43}, {107, 0, 21, 362}};
  for (const auto& [tokens, padding, chunks, frames] : rows) {
    const ChunkPlan plan = plan_chunks(grid, tokens);
    EXPECT_EQ(plan.padding, padding) << tokens;
    EXPECT_EQ(plan.chunks, chunks) << tokens;
    EXPECT_EQ(plan.frames, frames) << tokens;
  }
}

TEST(ChunkPlan, EveryFrameIsMadeOnce) {
  const TemporalGrid grid = released_grid();
  for (std::int64_t tokens = 2; tokens <= 400; ++tokens) {
    const ChunkPlan plan = plan_chunks(grid, tokens);
    std::int64_t frames = 0, dropped = 0;
    for (std::int64_t t = 0; t < tokens; ++t) frames += t % 5 == 0 ? 1 : 4;
    for (std::int64_t q = 0; q < plan.padding; ++q) dropped += (tokens + q) % 5 == 0 ? 1 : 4;
    EXPECT_EQ(plan.frames, frames) << tokens;
    EXPECT_EQ(plan.dropped, dropped) << tokens;
    EXPECT_EQ(plan.chunk_tokens, 7);
    EXPECT_EQ(plan.decoded, 28);
    EXPECT_EQ(plan.head, (Range{3, 20}));
    EXPECT_EQ(plan.tail, (Range{23, 28}));
    EXPECT_EQ((plan.chunks - 1) * 5 + 7, tokens + plan.padding) << "the last chunk ends with the padding";
    std::int64_t at = 0;
    for (std::int64_t c = 0; c < plan.chunks; ++c) {
      EXPECT_EQ(plan.head_frames(c).begin, at);
      at = plan.head_frames(c).end;
    }
    EXPECT_EQ(plan.tail_frames().begin, at);
    EXPECT_EQ(plan.tail_frames().end, frames);
  }
}

TEST(ChunkPlan, PaddingRepeatsTheLastLatent) {
  const ChunkPlan plan = plan_chunks(released_grid(), 8);
  EXPECT_EQ(plan.token(0, 6), 6);
  EXPECT_EQ(plan.token(1, 0), 5);
  EXPECT_EQ(plan.token(1, 2), 7);
  for (std::int64_t t = 3; t < 7; ++t) EXPECT_EQ(plan.token(1, t), 7);
}

TEST(ChunkPlan, OneLatentFrame) {
  const ChunkPlan plan = plan_chunks(released_grid(), 1);
  EXPECT_EQ(plan.chunks, 1);
  EXPECT_EQ(plan.chunk_tokens, 1);
  EXPECT_EQ(plan.frames, 1);
  EXPECT_EQ(plan.head, (Range{3, 4}));
  EXPECT_EQ(plan.tail.size(), 0);
  EXPECT_EQ(released_grid().tokens(1), 1);
}

TEST(ChunkPlan, RefusesWhatItCannotPlan) {
  EXPECT_THROW(plan_chunks(released_grid(), 0), UserError);
  EXPECT_THROW(plan_chunks(released_grid(), -3), UserError);
  VideoVaeConfig config = released_model_config().video_vae;
  config.clip_length = 16;
  EXPECT_THROW(temporal_grid(config), UserError);
  config = released_model_config().video_vae;
  config.token_drop = 2;
  EXPECT_THROW(temporal_grid(config), UserError);
  config = released_model_config().video_vae;
  config.tile = 512;
  EXPECT_THROW(temporal_grid(config), UserError);
}

}  // namespace
}  // namespace h3
