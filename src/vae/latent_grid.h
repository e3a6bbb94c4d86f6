// A clip's latents as the video decoder wants them: unpacked from the transformer's rows and denormalised (spec/vae.md
// 4), one row a token, in page-locked memory. Every rank computes them alike, so that a unit sees the same bits
// wherever it is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/machine.h"
#include "vae/chunk_plan.h"
#include "vae/decoder_rope.h"
#include "weights/model_config.h"

namespace h3 {

class LatentGrid {
 public:
  // `rows` [frames * (height / 2) * (width / 2), 4 * channels] f32 on the host (sampling/latent_rows.h), height and
  // width in latents. z = fl(fl(row * std) + mean).
  LatentGrid(Machine& machine, const VideoVaeConfig& config, const Tensor& rows, std::int64_t frames,
             std::int64_t height, std::int64_t width);
  // Copies the latents of a chunk to `to` [chunk tokens * height * width, channels]. They must live until `q` is past.
  void copy_chunk(Machine& machine, Queue& q, const ChunkPlan& plan, std::int64_t chunk, const Tensor& to) const;
  // The rows of a chunk's latents that make up one tile, latents from (y, x) on, in the decoder's order.
  std::vector<std::int32_t> tile_rows(const TokenGrid& grid, std::int64_t y, std::int64_t x) const;
  float at(std::int64_t channel, std::int64_t frame, std::int64_t y, std::int64_t x) const {
    return values_.as<float>()[row(frame, y, x) * channels_ + channel];
  }

 private:
  std::int64_t row(std::int64_t frame, std::int64_t y, std::int64_t x) const {
    return (frame * height_ + y) * width_ + x;
  }

  std::int64_t channels_, frames_, height_, width_;
  Buffer memory_;
  Tensor values_;  // [frames, height * width, channels]
};

}  // namespace h3
