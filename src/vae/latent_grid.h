// A clip's latents as the video decoder wants them: unpacked from the transformer's rows and denormalised (spec/vae.md
// 4), on the host. Every rank computes them alike, so that a unit sees the same bits wherever it is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/tensor.h"
#include "vae/chunk_plan.h"
#include "vae/decoder_rope.h"
#include "weights/model_config.h"

namespace h3 {

class LatentGrid {
 public:
  // `rows` [frames * (height / 2) * (width / 2), 4 * channels] f32 on the host (sampling/latent_rows.h), height and
  // width in latents. z = fl(fl(row * std) + mean).
  LatentGrid(const VideoVaeConfig& config, const Tensor& rows, std::int64_t frames, std::int64_t height,
             std::int64_t width);
  // Writes the tokens of one tile of one chunk to `out` [grid.tokens(), channels]: latents from (y, x) on.
  void copy_tokens(const ChunkPlan& plan, std::int64_t chunk, const TokenGrid& grid, std::int64_t y, std::int64_t x,
                   float* out) const;
  float at(std::int64_t channel, std::int64_t frame, std::int64_t y, std::int64_t x) const {
    return values_[static_cast<std::size_t>(((channel * frames_ + frame) * height_ + y) * width_ + x)];
  }

 private:
  std::int64_t channels_, frames_, height_, width_;
  std::vector<float> values_;  // [channels, frames, height, width]
};

}  // namespace h3
