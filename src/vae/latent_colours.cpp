#include "vae/latent_colours.h"

#include <algorithm>
#include <cmath>

#include "vae/chunk_plan.h"
#include "vae/pixel_range.h"
#include "vae/tile_plan.h"
#include "vae/video_decoder.h"

namespace h3 {

namespace {

constexpr std::int64_t kSide = LatentColours::kSide;

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lrint(std::clamp(value, 0.0, 255.0)));
}

// Sums of products that a least-squares fit needs, taken up row by row.
class NormalEquations {
 public:
  NormalEquations(std::int64_t inputs, std::int64_t outputs)
      : n_(inputs),
        m_(outputs),
        square_(static_cast<std::size_t>(n_ * n_)),
        right_(static_cast<std::size_t>(n_ * m_)) {}

  void add(const std::vector<double>& inputs, const std::vector<double>& outputs) {
    for (std::int64_t i = 0; i < n_; ++i) {
      const double x = inputs[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < n_; ++j) square(i, j) += x * inputs[static_cast<std::size_t>(j)];
      for (std::int64_t j = 0; j < m_; ++j) right(i, j) += x * outputs[static_cast<std::size_t>(j)];
    }
  }

  // [inputs, outputs]. Gaussian elimination; a little is added to the diagonal, so that inputs that say the same (or
  // nothing) do no harm.
  std::vector<double> solve() {
    double trace = 0;
    for (std::int64_t i = 0; i < n_; ++i) trace += square(i, i);
    for (std::int64_t i = 0; i < n_; ++i) square(i, i) += 1e-4 * trace / static_cast<double>(n_) + 1e-12;
    for (std::int64_t p = 0; p < n_; ++p)
      for (std::int64_t i = 0; i < n_; ++i) {
        if (i == p) continue;
        const double factor = square(i, p) / square(p, p);
        for (std::int64_t j = p; j < n_; ++j) square(i, j) -= factor * square(p, j);
        for (std::int64_t j = 0; j < m_; ++j) right(i, j) -= factor * right(p, j);
      }
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < m_; ++j) right(i, j) /= square(i, i);
    return right_;
  }

 private:
  double& square(std::int64_t i, std::int64_t j) { return square_[static_cast<std::size_t>(i * n_ + j)]; }
  double& right(std::int64_t i, std::int64_t j) { return right_[static_cast<std::size_t>(i * m_ + j)]; }

  std::int64_t n_, m_;
  std::vector<double> square_, right_;
};

// The colours of one latent's square in decoded pixels [3, frames, height, width] of a tile, in 0..255.
std::vector<double> square_colours(const Tensor& pixels, std::int64_t frame, std::int64_t y0, std::int64_t x0,
                                   std::int64_t side) {
  const std::int64_t part = side / kSide;
  std::vector<double> colours;
  for (std::int64_t y = 0; y < kSide; ++y)
    for (std::int64_t x = 0; x < kSide; ++x)
      for (std::size_t c = 0; c < kPixelMean.size(); ++c) {
        const Tensor plane = pixels.at(static_cast<std::int64_t>(c)).at(frame);
        double sum = 0;
        for (std::int64_t i = 0; i < part * part; ++i) {
          const std::int64_t line = y0 + y * part + i / part, column = x0 + x * part + i % part;
          const float pixel = plane.as<float>()[line * plane.size(1) + column] * kPixelStd[c] + kPixelMean[c];
          sum += std::isfinite(pixel) ? static_cast<double>(std::clamp(pixel, 0.0f, 1.0f)) : 0.0;
        }
        colours.push_back(255 * sum / static_cast<double>(part * part));
      }
  return colours;
}

// A tile of a chunk, where it begins in latents.
struct SampleTile {
  std::int64_t chunk = 0, y = 0, x = 0;
};

// Spread evenly over a clip's chunks and tiles.
std::vector<SampleTile> sample_tiles(const ChunkPlan& chunks, const TilePlan& tiles) {
  const std::int64_t all = chunks.chunks * tiles.count(), taken = std::min(all, LatentColours::kTiles);
  std::vector<SampleTile> samples;
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t at = (2 * i + 1) * all / (2 * taken), tile = at % tiles.count();
    samples.push_back({at / tiles.count(), tiles.y.start(tiles.row(tile)), tiles.x.start(tiles.column(tile))});
  }
  return samples;
}

// Decodes tiles of `grid`; pixels [tiles, 3, frames, height, width] on the host, in `memory`.
Tensor decode_tiles(Machine& machine, Queue& q, VideoDecoder& decoder, const TokenGrid& grid,
                    const std::vector<float>& latents, Buffer& memory) {
  const VideoVaeConfig& config = decoder.config();
  const std::int64_t tokens = static_cast<std::int64_t>(latents.size()) / config.latent_channels;
  const Shape in{tokens, config.latent_channels};
  const Shape out{tokens / grid.tokens(), config.out_channels, config.ratio_t() * grid.t, config.ratio_s() * grid.h,
                  config.ratio_s() * grid.w};
  const auto bytes = [](const Shape& shape) { return static_cast<std::size_t>(shape.elements()) * sizeof(float); };
  const Buffer tile_latents(machine, bytes(in), machine.place()), tile_pixels(machine, bytes(out), machine.place());
  memory = Buffer(machine, bytes(out), Place::host);
  const Tensor pixels = memory.tensor(out, DType::f32);
  decoder.prepare(q, grid, out[0]);
  machine.copy(q, Tensor(const_cast<float*>(latents.data()), in, DType::f32), tile_latents.tensor(in, DType::f32));
  decoder.decode(q, tile_latents.tensor(in, DType::f32), tile_pixels.tensor(out, DType::f32));
  machine.copy(q, tile_pixels.tensor(out, DType::f32), pixels);
  q.wait();
  return pixels;
}

}  // namespace

LatentColours::LatentColours(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights,
                             VaeProfile profile, const Tensor& rows, std::int64_t frames, std::int64_t height,
                             std::int64_t width)
    : channels_(config.latent_channels),
      height_(height),
      width_(width),
      clip_tokens_(temporal_grid(config).clip_tokens),
      grid_(machine, config, rows, frames, height, width) {
  const std::int64_t ratio = config.ratio_s();
  const ChunkPlan chunks = plan_chunks(temporal_grid(config), frames);
  const TilePlan tiles = plan_tiles(config, ratio * height, ratio * width).divided_by(ratio);
  const TokenGrid tile{chunks.chunk_tokens, tiles.y.tile, tiles.x.tile};

  // Of each token of the tiles its frame and its latent, which are what is decoded and what is fitted.
  std::vector<std::int64_t> frame_of;
  std::vector<std::vector<double>> inputs;
  std::vector<float> values;
  for (const SampleTile& sample : sample_tiles(chunks, tiles))
    for (std::int64_t token = 0; token < tile.tokens(); ++token) {
      const std::int64_t frame = chunks.token(sample.chunk, token / (tile.h * tile.w));
      const std::int64_t y = sample.y + token / tile.w % tile.h, x = sample.x + token % tile.w;
      frame_of.push_back(frame);
      inputs.push_back(latent(frame, y, x));
      for (std::int64_t c = 0; c < channels_; ++c) values.push_back(grid_.at(c, frame, y, x));
    }
  VideoDecoder decoder(machine, q, config, weights, profile);
  Buffer memory;
  const Tensor pixels = decode_tiles(machine, q, decoder, tile, values, memory);

  std::array<NormalEquations, 2> equations{NormalEquations(channels_ + 1, kColours),
                                           NormalEquations(channels_ + 1, kColours)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t token = static_cast<std::int64_t>(i) % tile.tokens(), t = token / (tile.h * tile.w);
    equations[frame_of[i] % clip_tokens_ == 0 ? 0 : 1].add(
        inputs[i],
        square_colours(pixels.at(static_cast<std::int64_t>(i) / tile.tokens()), config.ratio_t() * (t + 1) - 1,
                       ratio * (token / tile.w % tile.h), ratio * (token % tile.w), ratio));
  }
  for (std::size_t kind = 0; kind < maps_.size(); ++kind) maps_[kind] = equations[kind].solve();
}

// Denormalised, and a one for the constant.
std::vector<double> LatentColours::latent(std::int64_t frame, std::int64_t y, std::int64_t x) const {
  std::vector<double> values;
  for (std::int64_t c = 0; c < channels_; ++c) values.push_back(static_cast<double>(grid_.at(c, frame, y, x)));
  values.push_back(1);
  return values;
}

std::vector<std::uint8_t> LatentColours::picture(std::int64_t frame) const {
  const std::vector<double>& map = maps_[frame % clip_tokens_ == 0 ? 0 : 1];
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(height_ * width_ * kColours));
  for (std::int64_t y = 0; y < height_; ++y)
    for (std::int64_t x = 0; x < width_; ++x) {
      const std::vector<double> values = latent(frame, y, x);
      for (std::int64_t k = 0; k < kColours; ++k) {
        double colour = 0;
        for (std::size_t c = 0; c < values.size(); ++c)
          colour += values[c] * map[c * kColours + static_cast<std::size_t>(k)];
        const std::int64_t line = y * kSide + k / 3 / kSide, column = x * kSide + k / 3 % kSide;
        rgb[static_cast<std::size_t>((line * width_ * kSide + column) * 3 + k % 3)] = to_byte(colour);
      }
    }
  return rgb;
}

}  // namespace h3
