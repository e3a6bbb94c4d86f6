#include "vae/latent_grid.h"

#include <limits>

#include "sampling/latent_rows.h"

namespace h3 {

LatentGrid::LatentGrid(Machine& machine, const VideoVaeConfig& config, const Tensor& rows, std::int64_t frames,
                       std::int64_t height, std::int64_t width)
    : channels_(config.latent_channels), frames_(frames), height_(height), width_(width) {
  CHECK_EQ(static_cast<std::int64_t>(config.latents_mean.size()), channels_);
  CHECK_EQ(static_cast<std::int64_t>(config.latents_std.size()), channels_);
  const Shape expected = video_rows_shape({channels_, frames, height, width});
  H3_CHECK(rows.shape == expected, rows.shape.text() + " against " + expected.text());
  H3_CHECK(rows.contiguous() && rows.dtype == DType::f32 && rows.place == Place::host);
  memory_ = Buffer(machine, rows.bytes(), Place::host);
  values_ = memory_.tensor({frames, height * width, channels_}, DType::f32);
  const std::int64_t wide = width / kPatch, patches = rows.size(0);
  for (std::int64_t patch = 0; patch < patches; ++patch) {
    const float* from = rows.as<float>() + patch * rows.size(1);
    const std::int64_t line = patch / wide * kPatch, x = patch % wide * kPatch;  // `line` counts over all frames
    for (std::int64_t p = 0; p < kPatch * kPatch; ++p) {
      float* to = values_.as<float>() + ((line + p / kPatch) * width_ + x + p % kPatch) * channels_;
      for (std::int64_t c = 0; c < channels_; ++c) {
        const float scaled = from[c * kPatch * kPatch + p] * config.latents_std[static_cast<std::size_t>(c)];
        to[c] = scaled + config.latents_mean[static_cast<std::size_t>(c)];
      }
    }
  }
}

void LatentGrid::copy_chunk(Machine& machine, Queue& q, const ChunkPlan& plan, std::int64_t chunk,
                            const Tensor& to) const {
  CHECK_EQ(plan.tokens, frames_);
  const std::int64_t area = height_ * width_;
  for (std::int64_t t = 0; t < plan.chunk_tokens; ++t)
    machine.copy(q, values_.at(plan.token(chunk, t)), to.rows(t * area, (t + 1) * area));
}

std::vector<std::int32_t> LatentGrid::tile_rows(const TokenGrid& grid, std::int64_t y, std::int64_t x) const {
  CHECK_LE(y + grid.h, height_);
  CHECK_LE(x + grid.w, width_);
  CHECK_LE(grid.t * height_ * width_, std::int64_t{std::numeric_limits<std::int32_t>::max()});
  std::vector<std::int32_t> rows;
  for (std::int64_t t = 0; t < grid.t; ++t)
    for (std::int64_t line = y; line < y + grid.h; ++line)
      for (std::int64_t column = x; column < x + grid.w; ++column)
        rows.push_back(static_cast<std::int32_t>(row(t, line, column)));
  return rows;
}

}  // namespace h3
