#include "vae/latent_grid.h"

#include "sampling/latent_rows.h"

namespace h3 {

LatentGrid::LatentGrid(const VideoVaeConfig& config, const Tensor& rows, std::int64_t frames, std::int64_t height,
                       std::int64_t width)
    : channels_(config.latent_channels), frames_(frames), height_(height), width_(width) {
  CHECK_EQ(static_cast<std::int64_t>(config.latents_mean.size()), channels_);
  CHECK_EQ(static_cast<std::int64_t>(config.latents_std.size()), channels_);
  values_.resize(static_cast<std::size_t>(channels_ * frames * height * width));
  const Tensor latent(values_.data(), {channels_, frames, height, width}, DType::f32);
  const Shape expected = video_rows_shape(latent.shape);
  H3_CHECK(rows.shape == expected, rows.shape.text() + " against " + expected.text());
  video_latent_from_rows(rows, latent);
  const std::size_t plane = values_.size() / static_cast<std::size_t>(channels_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const float scaled = values_[i] * config.latents_std[i / plane];
    values_[i] = scaled + config.latents_mean[i / plane];
  }
}

void LatentGrid::copy_tokens(const ChunkPlan& plan, std::int64_t chunk, const TokenGrid& grid, std::int64_t y,
                             std::int64_t x, float* out) const {
  CHECK_EQ(plan.tokens, frames_);
  CHECK_LE(y + grid.h, height_);
  CHECK_LE(x + grid.w, width_);
  for (std::int64_t t = 0; t < grid.t; ++t)
    for (std::int64_t row = y; row < y + grid.h; ++row)
      for (std::int64_t column = x; column < x + grid.w; ++column)
        for (std::int64_t c = 0; c < channels_; ++c) *out++ = at(c, plan.token(chunk, t), row, column);
}

}  // namespace h3
