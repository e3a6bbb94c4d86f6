#include "vae/chunk_plan.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace h3 {

static std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t TemporalGrid::frames(std::int64_t tokens) const {
  const std::int64_t whole = tokens / clip_tokens, rest = tokens % clip_tokens;
  return whole * clip + (rest > 0 ? 1 + (rest - 1) * ratio : 0);
}

std::int64_t TemporalGrid::tokens(std::int64_t frames) const {
  return frames == 1 ? 1 : clip_tokens * (round_up(frames, clip) / clip) - token_drop;
}

TemporalGrid temporal_grid(const VideoVaeConfig& config) {
  TemporalGrid grid;
  grid.clip = config.clip_length;
  grid.token_drop = config.token_drop;
  grid.ratio = config.ratio_t();
  if (grid.clip > 0 && grid.ratio > 0) {
    grid.clip_tokens = (grid.clip + grid.ratio - 1) / grid.ratio;
    grid.pre_pad = grid.clip_tokens * grid.ratio - grid.clip;
    grid.token_overlap = round_up(grid.token_drop, grid.clip_tokens) - grid.token_drop;
    grid.frame_overlap = std::max<std::int64_t>(grid.token_overlap * grid.ratio - grid.pre_pad, 0);
  }
  const bool supported = grid.clip == 17 && grid.token_drop == 3 && grid.ratio == 4 && config.ratio_s() == 16;
  if (!supported)
    throw UserError(
        "video autoencoder", "clip_length, token_drop, downsampling",
        fmt::format("{}, {}, {} in time and {} in space", grid.clip, grid.token_drop, grid.ratio, config.ratio_s()),
        "17, 3, 4 and 16: other geometry is not supported");
  if (config.tile != 256 || config.tile_overlap != 64)
    throw UserError("video autoencoder", "tile size, overlap", fmt::format("{}, {}", config.tile, config.tile_overlap),
                    "256 and 64, which the weights were trained with");
  return grid;
}

std::int64_t ChunkPlan::token(std::int64_t c, std::int64_t t) const {
  return std::min(c * chunk_step + t, tokens - 1);
}

Range ChunkPlan::head_frames(std::int64_t c) const {
  return {std::min(frames, c * head.size()), std::min(frames, (c + 1) * head.size())};
}

Range ChunkPlan::tail_frames() const {
  const std::int64_t begin = chunks * head.size();
  return {std::min(frames, begin), std::min(frames, begin + tail.size())};
}

ChunkPlan plan_chunks(const TemporalGrid& grid, std::int64_t tokens) {
  if (tokens < 1) throw UserError("clip", "latent frames", std::to_string(tokens), "1 or more");
  ChunkPlan plan;
  plan.tokens = tokens;
  plan.frames = grid.frames(tokens);
  plan.chunk_step = grid.clip_tokens;
  if (tokens == 1) {
    plan.chunks = plan.chunk_tokens = 1;
    plan.decoded = grid.ratio;
    plan.head = {grid.pre_pad, grid.ratio};
    return plan;
  }
  plan.padding = round_up(tokens + grid.token_drop, grid.clip_tokens) - (tokens + grid.token_drop);
  plan.chunks = (tokens + grid.token_drop + plan.padding) / grid.clip_tokens - 1;
  if (plan.chunks < 1) {
    plan.padding += grid.clip_tokens;
    plan.chunks = 1;
  }
  plan.chunk_tokens = grid.clip_tokens + grid.token_overlap;
  plan.decoded = plan.chunk_tokens * grid.ratio;
  const std::int64_t tail = grid.clip_tokens * grid.ratio + grid.pre_pad;
  plan.head = {grid.pre_pad, grid.pre_pad + grid.clip};
  plan.tail = {tail, tail + grid.frame_overlap};
  const std::int64_t made = plan.chunks * plan.head.size() + plan.tail.size();
  plan.dropped = grid.frames(tokens + plan.padding) - plan.frames;
  CHECK_EQ(made - plan.dropped, plan.frames);
  return plan;
}

}  // namespace h3
