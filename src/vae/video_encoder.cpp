#include "vae/video_encoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace h3 {

namespace {

std::int64_t downsampled(std::int64_t frames, std::int64_t stride) {
  return (frames - 1) / stride + 1;
}

// The largest activation with its padding, in elements.
std::int64_t largest_activation(const VideoVaeConfig& c, PixelTile tile) {
  const auto padded = [&](std::int64_t channels) {
    return channels * tile.frames * (tile.height + 2) * (tile.width + 2);
  };
  std::int64_t most = padded(std::max(c.in_channels, c.widths.front()));
  std::int64_t in = c.widths.front();
  for (std::size_t level = 0; level < c.widths.size(); ++level) {
    most = std::max(most, padded(std::max(in, c.widths[level])));
    in = c.widths[level];
    tile = {downsampled(tile.frames, c.temporal_down[level]), tile.height / c.spatial_down[level],
            tile.width / c.spatial_down[level]};
  }
  return std::max(most, padded(2 * c.latent_channels));
}

WeightSet end_weights(const WeightSet& weights) {
  WeightSet part;
  for (const char* name : {"encoder.conv_in", "encoder.norm_out", "encoder.conv_out", "quant_conv"})
    for (const char* kind : {".weight", ".bias"}) {
      const std::string full = std::string(name) + kind;
      part.add(full, weights.at(full));
    }
  return part;
}

}  // namespace

// Three buffers that any activation fits in: the input of a step, its padded copy, and its result.
class VideoEncoder::Pool {
 public:
  Pool(Arena& arena, std::int64_t elements) {
    arena.rewind(0);
    for (Tensor& b : buffers_) b = arena.take({elements}, DType::f32);
  }
  // A buffer that holds none of `used`, with the given shape.
  Tensor take(Shape shape, std::initializer_list<const void*> used) const {
    for (const Tensor& b : buffers_)
      if (std::find(used.begin(), used.end(), b.data) == used.end()) {
        CHECK_LE(shape.elements(), b.elements());
        return Tensor(b.data, shape, b.dtype, b.place);
      }
    check_failed(__FILE__, __LINE__, "a free buffer", "");
  }

 private:
  std::array<Tensor, 3> buffers_;
};

std::size_t VideoEncoder::working_bytes(const VideoVaeConfig& config, const PixelTile& largest) {
  Arena counted;
  Pool(counted, largest_activation(config, largest));
  return counted.peak();
}

Shape VideoEncoder::moments_shape(const VideoVaeConfig& config, const PixelTile& tile) {
  std::int64_t frames = tile.frames;
  for (const std::int64_t stride : config.temporal_down) frames = downsampled(frames, stride);
  return {2 * config.latent_channels, frames, tile.height / config.ratio_s(), tile.width / config.ratio_s()};
}

VideoEncoder::VideoEncoder(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights,
                           Residency residency)
    : machine_(machine), operators_(machine.operators()), config_(config) {
  std::vector<WeightSet> ends, levels;
  ends.push_back(end_weights(weights));
  for (std::size_t i = 0; i < config.widths.size(); ++i)
    levels.push_back(below(weights, fmt::format("encoder.down.{}.", i)));
  ends_ = std::make_unique<WeightGroups>(machine, q, std::move(ends), Residency::resident);
  levels_ = std::make_unique<WeightGroups>(machine, q, std::move(levels), residency);
}

void VideoEncoder::prepare(const PixelTile& largest) {
  const std::size_t bytes = working_bytes(config_, largest);
  if (bytes <= arena_.capacity()) return;
  arena_ = Arena();
  arena_ = Arena(machine_, bytes);
}

static Shape with_sides(const Tensor& x, std::int64_t height, std::int64_t width) {
  return {x.size(0), x.size(1), height, width};
}

// The causal 3 x 3 x 3 convolution: reflected by one on all sides, two zero frames before the first (spec/vae.md 5).
// The buffer of `keep` survives; that of x does so where it is `keep`.
Tensor VideoEncoder::padded_conv(Queue& q, const LinearWeights& w, const Tensor& x, const Tensor& keep, Pool& pool) {
  const Tensor padded = pool.take(with_sides(x, x.size(2) + 2, x.size(3) + 2), {x.data, keep.data});
  operators_.pad_reflect(q, x, 1, 1, padded);
  const Tensor y = pool.take({w.weight.size(0), x.size(1), x.size(2), x.size(3)}, {padded.data, keep.data});
  operators_.conv3d_causal(q, padded, w.weight, w.bias, {}, y);
  return y;
}

Tensor VideoEncoder::normed_conv(Queue& q, const WeightSet& w, const std::string& norm, const std::string& conv,
                                 const Tensor& x, const Tensor& keep, Pool& pool) {
  const Tensor normed = pool.take(x.shape, {x.data, keep.data});
  operators_.group_norm(q, x, w.at(norm + ".weight"), w.at(norm + ".bias"), config_.norm_groups, config_.norm_eps, true,
                        normed);
  return padded_conv(q, w.linear(conv), normed, keep, pool);
}

// [channels, frames, height, width] as [channels, rest].
static Tensor as_matrix(const Tensor& x) {
  return x.reshape({x.size(0), x.elements() / x.size(0)});
}

Tensor VideoEncoder::residual(Queue& q, const WeightSet& w, const std::string& name, const Tensor& x, Pool& pool) {
  const Tensor inner = normed_conv(q, w, name + ".norm1", name + ".conv1", x, x, pool);
  const Tensor y = normed_conv(q, w, name + ".norm2", name + ".conv2", inner, x, pool);
  Tensor shortcut = x;
  if (w.has(name + ".nin_shortcut.weight")) {
    const LinearWeights conv = w.linear(name + ".nin_shortcut");
    shortcut = pool.take(y.shape, {x.data, y.data});
    operators_.conv3d_causal(q, x, conv.weight, conv.bias, {}, shortcut);
  }
  operators_.add(q, as_matrix(y), as_matrix(shortcut));
  return y;
}

// Reflected by one at the bottom and on the right, then every second row and column (spec/vae.md 5).
Tensor VideoEncoder::downsample(Queue& q, const WeightSet& w, std::size_t level, const Tensor& x, Pool& pool) {
  const LinearWeights conv = w.linear("downsample.conv");
  const std::int64_t time = config_.temporal_down[level], space = config_.spatial_down[level];
  const Tensor padded = pool.take(with_sides(x, x.size(2) + 1, x.size(3) + 1), {x.data});
  operators_.pad_reflect(q, x, 0, 0, padded);
  const Tensor y = pool.take({conv.weight.size(0), downsampled(x.size(1), time), x.size(2) / space, x.size(3) / space},
                             {padded.data});
  operators_.conv3d_causal(q, padded, conv.weight, conv.bias, {time, space, space}, y);
  return y;
}

void VideoEncoder::encode(Queue& q, const Tensor& pixels, const Tensor& moments) {
  const PixelTile tile{pixels.size(1), pixels.size(2), pixels.size(3)};
  for (const std::int64_t side : {tile.height, tile.width}) {
    CHECK_GE(side, kSmallestEncodedSide);
    CHECK_EQ(side % config_.ratio_s(), 0);
  }
  CHECK_EQ(moments.elements(), moments_shape(config_, tile).elements());
  const WeightSet& ends = ends_->use(q, 0);
  Pool pool(arena_, largest_activation(config_, tile));
  Tensor x = padded_conv(q, ends.linear("encoder.conv_in"), pixels, pixels, pool);
  for (std::size_t level = 0; level < levels_->size(); ++level) {
    const WeightSet& w = levels_->use(q, level);
    for (std::int64_t b = 0; b < config_.blocks_per_level; ++b) x = residual(q, w, fmt::format("block.{}", b), x, pool);
    if (config_.spatial_down[level] > 1 || config_.temporal_down[level] > 1) x = downsample(q, w, level, x, pool);
  }
  x = normed_conv(q, ends, "encoder.norm_out", "encoder.conv_out", x, Tensor(), pool);
  const LinearWeights quant = ends.linear("quant_conv");
  operators_.conv3d_causal(q, x, quant.weight, quant.bias, {}, moments.reshape(moments_shape(config_, tile)));
}

}  // namespace h3
