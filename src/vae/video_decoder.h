// The video decoder network (spec/vae.md 7, 8): a bidirectional vision transformer that turns the latents of one tile
// of one chunk into pixels. Tiles of a group are stacked row under row for the linear layers and attend each to
// itself, so a tile's bits do not depend on the group. Profile F computes in float32, profile R as the released decoder
// does: f16 operands, float32 accumulation and residual stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "vae/decoder_rope.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

class VideoDecoder {
 public:
  // `weights`: the video_vae component in host memory, which outlives this object; block linears may be f32 or f16 and
  // are converted to the profile's type. Blocks are resident or streamed, the rest is resident.
  VideoDecoder(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights, VaeProfile profile,
               Residency residency = Residency::resident);

  // Allocates what decoding up to `max_tiles` tiles of `grid` at once takes, and uploads the rotary table.
  void prepare(Queue& q, const TokenGrid& grid, std::int64_t max_tiles);
  // Bytes at Machine::place() that `prepare` takes.
  static std::size_t working_bytes(const VideoVaeConfig& config, VaeProfile profile, const TokenGrid& grid,
                                   std::int64_t max_tiles);

  // latents [tiles * grid.tokens(), latent channels] f32, denormalised, token order time, row, column; pixels [tiles,
  // 3, 4 t, 16 h, 16 w] f32, contiguous, in the normalised domain of spec/vae.md 4.
  void decode(Queue& q, const Tensor& latents, const Tensor& pixels);

  const VideoVaeConfig& config() const { return config_; }

 private:
  struct Layout;
  void embed(Queue& q, const Tensor& latents, const Tensor& stream);
  // A block takes its normed rows and leaves those of the next one: each norm runs in one pass with the residual sum
  // before it.
  void block(Queue& q, std::size_t b, const Tensor& stream, const Tensor& normed);
  Tensor attend(Queue& q, const WeightSet& w, const Tensor& normed);
  Tensor feed_forward(Queue& q, const WeightSet& w, const Tensor& normed);
  void to_pixels(Queue& q, const Tensor& stream, const Tensor& pixels);

  Machine& machine_;
  Operators& operators_;
  VideoVaeConfig config_;
  VaeProfile profile_;
  DType type_;                          // of the block linears' operands
  std::int64_t extra_;                  // tokens behind a tile's own: the registers and a zero token
  std::unique_ptr<WeightGroups> ends_;  // embedding, head, and the blocks' first norms
  std::unique_ptr<WeightGroups> blocks_;
  Buffer extra_tokens_buffer_;
  Tensor extra_tokens_;  // [extra, width] f32
  TokenGrid grid_;
  std::int64_t max_tiles_ = 0;
  Buffer rope_buffer_;
  Tensor cos_, sin_;  // [max_tiles * rows of a tile, 3 frequencies]
  Arena arena_;
};

}  // namespace h3
