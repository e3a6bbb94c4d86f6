#include "vae/video_encode.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "sampling/normal_generator.h"
#include "vae/encode_plan.h"
#include "vae/pixel_range.h"
#include "vae/tile_plan.h"
#include "vae/tile_stitch.h"
#include "vae/work_plan.h"

namespace h3 {

namespace {

constexpr std::uint64_t kPosteriorSeed = 42;

struct Plan {
  EncodePlan clips;
  TilePlan tiles;  // in pixels
  WorkPlan work;
  VideoVaeConfig config;

  PixelTile tile(std::int64_t clip) const { return {clips.frames_of(clip), tiles.y.tile, tiles.x.tile}; }
  Shape moments(std::int64_t clip) const { return VideoEncoder::moments_shape(config, tile(clip)); }
  // Elements of all units before unit `u`, in unit order.
  std::int64_t offset(std::int64_t u) const {
    const std::int64_t clip = std::min(u / work.units_per_piece(), clips.clips - 1);
    return (u - clip * tiles.count()) * moments(clip).elements() + clip * tiles.count() * moments(0).elements();
  }
};

// Encodes this rank's units and collects those of all ranks; unit u starts at plan.offset(u).
class EncodeRun {
 public:
  EncodeRun(Machine& machine, Queue& q, VideoEncoder& encoder, const Plan& plan)
      : machine_(machine), q_(q), encoder_(encoder), plan_(plan) {
    const std::int64_t all = plan.offset(plan.work.units());
    moments_ = Buffer(machine, static_cast<std::size_t>(all) * sizeof(float), machine.place());
  }

  void encode_own_units(const Tensor& frames, int rank) {
    const Range units = plan_.work.units_of_rank(rank);
    if (units.size() == 0) return;
    const PixelTile largest = plan_.tile(0);
    encoder_.prepare(largest);
    const auto bytes = static_cast<std::size_t>(3 * largest.frames * largest.height * largest.width) * sizeof(float);
    Buffer host(machine_, bytes, Place::host), there(machine_, bytes, machine_.place());
    for (std::int64_t u = units.begin; u < units.end; ++u) {
      const PixelTile tile = plan_.tile(plan_.work.unit(u).piece);
      const Shape shape{3, tile.frames, tile.height, tile.width};
      q_.wait();  // an earlier unit may still be reading the host's pixels
      copy_pixels(frames, u, host.tensor(shape, DType::f32));
      machine_.copy(q_, host.tensor(shape, DType::f32), there.tensor(shape, DType::f32));
      encoder_.encode(q_, there.tensor(shape, DType::f32), unit_moments(u));
    }
    q_.wait();
  }

  void share(Communicator& ranks) {
    std::vector<Tensor> blocks;
    for (int r = 0; r < ranks.size(); ++r) {
      const Range units = plan_.work.units_of_rank(r);
      blocks.push_back(stretch(plan_.offset(units.begin), plan_.offset(units.end)));
    }
    ranks.all_gather(q_, blocks);
  }

  // Clip by clip into [2 channels, latent frames, height / 16, width / 16] on the host.
  LatentVolume stitch() {
    const TilePlan latent_tiles = plan_.tiles.divided_by(plan_.config.ratio_s());
    const std::int64_t channels = 2 * plan_.config.latent_channels;
    LatentVolume all;
    all.shape = {channels, plan_.clips.tokens, latent_tiles.y.length, latent_tiles.x.length};
    all.values.resize(static_cast<std::size_t>(all.shape.elements()));
    const std::int64_t frame = latent_tiles.y.length * latent_tiles.x.length;
    std::vector<float> clip_values;
    for (std::int64_t c = 0, token = 0; c < plan_.clips.clips; token += plan_.clips.tokens_of(c++)) {
      const std::int64_t tokens = plan_.clips.tokens_of(c), run = tokens * frame;
      Buffer canvas(machine_, static_cast<std::size_t>(channels * run) * sizeof(float), machine_.place());
      TileStitcher stitcher(machine_, latent_tiles, channels * tokens);
      stitcher.start(canvas.tensor({channels * tokens, latent_tiles.y.length, latent_tiles.x.length}, DType::f32));
      const Range units = plan_.work.units_of_piece(c);
      for (std::int64_t u = units.begin; u < units.end; ++u) stitcher.add(q_, unit_moments(u));
      clip_values.resize(static_cast<std::size_t>(channels * run));
      machine_.copy(q_, canvas.tensor({channels, run}, DType::f32),
                    Tensor(clip_values.data(), {channels, run}, DType::f32));
      q_.wait();
      for (std::int64_t ch = 0; ch < channels; ++ch)
        std::copy_n(clip_values.data() + ch * run, run, all.values.data() + (ch * plan_.clips.tokens + token) * frame);
    }
    return all;
  }

 private:
  Tensor stretch(std::int64_t begin, std::int64_t end) const {
    return Tensor(static_cast<float*>(moments_.data()) + begin, {end - begin}, DType::f32, machine_.place());
  }
  Tensor unit_moments(std::int64_t u) const {
    return stretch(plan_.offset(u), plan_.offset(u + 1)).reshape(plan_.moments(plan_.work.unit(u).piece));
  }

  // (u8 / 255 - mean) / std of one tile, each operation rounded (spec/vae.md 6.5).
  void copy_pixels(const Tensor& frames, std::int64_t u, const Tensor& to) const {
    const WorkUnit unit = plan_.work.unit(u);
    const std::int64_t tile = unit.tiles.begin;
    const std::int64_t y0 = plan_.tiles.y.start(plan_.tiles.row(tile));
    const std::int64_t x0 = plan_.tiles.x.start(plan_.tiles.column(tile));
    float* out = to.as<float>();
    for (std::size_t c = 0; c < 3; ++c)
      for (std::int64_t f = 0; f < to.size(1); ++f)
        for (std::int64_t y = 0; y < to.size(2); ++y) {
          const std::int64_t row = plan_.clips.frame(unit.piece, f) * frames.size(1) + y0 + y;
          const std::uint8_t* in = frames.as<std::uint8_t>() + (row * frames.size(2) + x0) * 3;
          for (std::int64_t x = 0; x < to.size(3); ++x) {
            const float value = static_cast<float>(in[3 * x + static_cast<std::int64_t>(c)]) / 255.0f;
            *out++ = (value - kPixelMean[c]) / kPixelStd[c];
          }
        }
  }

  Machine& machine_;
  Queue& q_;
  VideoEncoder& encoder_;
  const Plan& plan_;
  Buffer moments_;
};

}  // namespace

LatentVolume encode_moments(Machine& machine, Queue& q, Communicator& ranks, VideoEncoder& encoder,
                            const Tensor& frames, std::vector<double> shares) {
  H3_CHECK(frames.rank() == 4 && frames.dtype == DType::u8 && frames.place == Place::host && frames.contiguous());
  if (frames.size(3) != 3)
    throw UserError("picture to encode", "channels", std::to_string(frames.size(3)), "3 (red, green, blue)");
  for (const int axis : {1, 2})
    if (frames.size(axis) < kSmallestEncodedSide)
      throw UserError("picture to encode", "side", std::to_string(frames.size(axis)),
                      fmt::format("{} pixels or more", kSmallestEncodedSide));
  const VideoVaeConfig& config = encoder.config();
  const EncodePlan clips = plan_encode(temporal_grid(config), frames.size(0));
  const TilePlan tiles = plan_tiles(config, frames.size(1), frames.size(2));
  if (shares.empty()) shares.assign(static_cast<std::size_t>(ranks.size()), 1.0);
  CHECK_EQ(shares.size(), static_cast<std::size_t>(ranks.size()));
  const Plan plan{clips, tiles, WorkPlan(clips.clips, tiles.count(), 1, shares), config};
  EncodeRun run(machine, q, encoder, plan);
  run.encode_own_units(frames, ranks.rank());
  run.share(ranks);
  return run.stitch();
}

LatentVolume draw_latent(const LatentVolume& moments, Posterior posterior) {
  LatentVolume latent;
  latent.shape = moments.shape;
  latent.shape[0] = moments.shape[0] / 2;
  const auto n = static_cast<std::size_t>(latent.shape.elements());
  latent.values.assign(moments.values.begin(), moments.values.begin() + static_cast<std::ptrdiff_t>(n));
  if (posterior == Posterior::mean) return latent;
  std::vector<float> noise(n);
  NormalGenerator(kPosteriorSeed).fill(noise);
  for (std::size_t i = 0; i < n; ++i) {
    const float log_variance = std::clamp(moments.values[n + i], -30.0f, 20.0f);
    // In double and rounded, so that the bits do not depend on the C library's float version.
    const auto deviation = static_cast<float>(std::exp(static_cast<double>(0.5f * log_variance)));
    const float spread = deviation * noise[i];
    latent.values[i] = round_to(DType::f16, latent.values[i] + spread);
  }
  return latent;
}

void normalize_latent(const VideoVaeConfig& config, LatentVolume& latent) {
  CHECK_EQ(latent.shape[0], config.latent_channels);
  const std::size_t volume = latent.values.size() / static_cast<std::size_t>(latent.shape[0]);
  for (std::size_t i = 0; i < latent.values.size(); ++i)
    latent.values[i] = (latent.values[i] - config.latents_mean[i / volume]) / config.latents_std[i / volume];
}

LatentVolume encode_video(Machine& machine, Queue& q, Communicator& ranks, VideoEncoder& encoder, const Tensor& frames,
                          Posterior posterior, std::vector<double> shares) {
  const LatentVolume moments = encode_moments(machine, q, ranks, encoder, frames, std::move(shares));
  LatentVolume latent = draw_latent(moments, posterior);
  normalize_latent(encoder.config(), latent);
  return latent;
}

}  // namespace h3
