// The video encoder network (spec/vae.md 5): a causal 3-D convolutional network that turns one tile of one clip into
// the moments of its latents. Every frame sees itself and earlier frames of its clip only; group norms are per frame
// and over the tile, which is why tiles and clips are part of the model. All float32.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compute/machine.h"
#include "compute/operators.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

// Pixels along a side that a tile needs: reflecting by one takes two samples after four halvings.
inline constexpr std::int64_t kSmallestEncodedSide = 32;

// A tile of a clip in pixels.
struct PixelTile {
  std::int64_t frames = 0, height = 0, width = 0;
  bool operator==(const PixelTile&) const = default;
};

class VideoEncoder {
 public:
  // `weights`: the video_vae component in host memory, f32; outlives this object. Levels are resident or streamed.
  VideoEncoder(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights,
               Residency residency = Residency::resident);

  // Allocates what encoding tiles up to this size takes.
  void prepare(const PixelTile& largest);
  // Bytes at Machine::place() that `prepare` takes.
  static std::size_t working_bytes(const VideoVaeConfig& config, const PixelTile& largest);
  // Moments of a tile: [2 channels, latent frames, height / 16, width / 16].
  static Shape moments_shape(const VideoVaeConfig& config, const PixelTile& tile);

  // pixels [3, frames, height, width] f32, normalised (spec/vae.md 4), sides multiples of 16, no smaller than
  // kSmallestEncodedSide -> moments f32 of moments_shape, mean first, then the logarithm of the variance, not clamped.
  // Both contiguous.
  void encode(Queue& q, const Tensor& pixels, const Tensor& moments);

  const VideoVaeConfig& config() const { return config_; }

 private:
  class Pool;
  Tensor padded_conv(Queue& q, const LinearWeights& w, const Tensor& x, const Tensor& keep, Pool& pool);
  Tensor normed_conv(Queue& q, const WeightSet& w, const std::string& norm, const std::string& conv, const Tensor& x,
                     const Tensor& keep, Pool& pool);
  Tensor residual(Queue& q, const WeightSet& w, const std::string& name, const Tensor& x, Pool& pool);
  Tensor downsample(Queue& q, const WeightSet& w, std::size_t level, const Tensor& x, Pool& pool);

  Machine& machine_;
  Operators& operators_;
  VideoVaeConfig config_;
  std::unique_ptr<WeightGroups> ends_, levels_;
  Arena arena_;
};

}  // namespace h3
