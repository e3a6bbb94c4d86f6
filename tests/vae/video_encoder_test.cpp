// The video encoder against the reference's moments and samples, its plans, and its independence rules.
#include "vae/video_encode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "media/png.h"
#include "parallel/solo_communicator.h"
#include "support/goldens.h"
#include "vae/encode_plan.h"
#include "vae_fixture.h"

namespace h3::test {
namespace {

struct Frames {
  Shape shape;  // [n, height, width, 3]
  std::vector<std::uint8_t> values;
  Tensor tensor() { return Tensor(values.data(), shape, DType::u8); }
};

const Goldens& goldens() {
  static const Goldens g("vae");
  return g;
}

Frames golden_frames(const std::string& name) {
  const auto& entry = goldens().json().at("frames").at(name);
  Frames frames;
  frames.shape = Shape(entry.at("shape").get<std::vector<std::int64_t>>());
  frames.values = read_png(source_path("tests/goldens/" + entry.at("file").get<std::string>())).rgb;
  EXPECT_EQ(static_cast<std::int64_t>(frames.values.size()), frames.shape.elements());
  return frames;
}

Frames random_frames(std::int64_t n, std::int64_t height, std::int64_t width) {
  Frames frames{{n, height, width, 3}, {}};
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < frames.shape.elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    frames.values.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  return frames;
}

class Encoder {
 public:
  Encoder(const VideoVaeConfig& config, const WeightSet& weights)
      : machine(make_cpu_machine()), queue(machine->make_queue()), encoder(*machine, *queue, config, weights) {}
  LatentVolume moments(Frames frames) {
    SoloCommunicator alone(*machine);
    return encode_moments(*machine, *queue, alone, encoder, frames.tensor());
  }
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Queue> queue;
  VideoEncoder encoder;
};

Encoder nano_encoder() {
  return Encoder(nano_config().video_vae, nano_weights(Component::video_vae));
}

// The small model's weights must outlive its encoder.
Encoder small_encoder() {
  static const VideoVaeConfig config = small_vae_config();
  static const WeightSet weights = small_vae_weights(config);
  return Encoder(config, weights);
}

// Values that may sit on a rounding boundary of float16: one step on at most 1 % of them, 1e-5 on the others.
void expect_half(const std::string& name, const std::vector<float>& actual, const std::vector<float>& steps) {
  const std::vector<float> expected = values_of(goldens().at(name));
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t other = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const float difference = std::abs(actual[i] - expected[i]);
    if (difference <= 1e-5f) continue;
    ++other;
    ASSERT_LE(difference, steps[i] * 1.001f) << name << " at " << i;
  }
  EXPECT_LE(static_cast<double>(other), 0.01 * static_cast<double>(actual.size())) << name;
  EXPECT_LE(distance(actual, expected).relative_l2, 6.2e-4) << name;
}

float half_step(float v) {
  int exponent = 0;
  std::frexp(v, &exponent);
  return std::ldexp(1.0f, std::max(exponent - 11, -24));
}

void expect_golden(const std::string& name) {
  Encoder nano = nano_encoder();
  LatentVolume moments = nano.moments(golden_frames("png:" + name));
  const std::int64_t channels = moments.shape[0] / 2;
  const Tensor mean = moments.tensor().slice(0, 0, channels);
  goldens().expect_close(name + ".mean", mean);
  if (goldens().has(name + ".logvar")) {
    LatentVolume clamped = moments;
    for (float& v : clamped.values) v = std::min(std::max(v, -30.0f), 20.0f);
    goldens().expect_close(name + ".logvar", clamped.tensor().slice(0, channels, 2 * channels));
  }
  if (!goldens().has(name + ".half")) return;
  LatentVolume latent = draw_latent(moments, Posterior::sample42);
  std::vector<float> steps;
  for (const float v : latent.values) steps.push_back(half_step(v));
  expect_half(name + ".half", latent.values, steps);
  normalize_latent(nano_config().video_vae, latent);
  const std::size_t volume = steps.size() / static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] /= nano_config().video_vae.latents_std[i / volume];
  expect_half(name + ".normalised", latent.values, steps);
}

TEST(VideoEncoder, GoldenImage) {
  expect_golden("encode_image");
}
TEST(VideoEncoder, GoldenTiledImage) {
  expect_golden("encode_tiled_image");
}
TEST(VideoEncoder, GoldenClip) {
  expect_golden("encode_clip");
}
TEST(VideoEncoder, GoldenTiledClip) {
  expect_golden("encode_tiled_clip");
}

TEST(VideoEncoder, Plans) {
  const TemporalGrid grid = temporal_grid(released_model_config().video_vae);
  struct Row {
    std::int64_t frames, clips, tokens, last_frames, last_tokens;
  };
  for (const Row& r : {Row{1, 1, 1, 1, 1},
                       {5, 1, 2, 5, 2},
                       {3, 1, 2, 5, 2},
                       {17, 1, 2, 5, 2},
                       {22, 2, 7, 5, 2},
                       {124, 8, 37, 5, 2},
                       {30, 2, 7, 5, 2}}) {
    const EncodePlan plan = plan_encode(grid, r.frames);
    EXPECT_EQ(plan.clips, r.clips) << r.frames;
    EXPECT_EQ(plan.tokens, r.tokens) << r.frames;
    EXPECT_EQ(plan.last_frames, r.last_frames) << r.frames;
    EXPECT_EQ(plan.last_tokens, r.last_tokens) << r.frames;
  }
  EXPECT_EQ(plan_encode(grid, 3).frame(0, 4), 2) << "the last frame repeats";
  EXPECT_THROW(plan_encode(grid, 0), UserError);
}

std::vector<float> tokens_of(const LatentVolume& m, std::int64_t begin, std::int64_t end) {
  std::vector<float> values;
  const std::int64_t frame = m.shape[2] * m.shape[3];
  for (std::int64_t c = 0; c < m.shape[0]; ++c) {
    const auto at = m.values.begin() + (c * m.shape[1] + begin) * frame;
    values.insert(values.end(), at, at + (end - begin) * frame);
  }
  return values;
}

TEST(VideoEncoder, IsCausalAndClipsAreIndependent) {
  Encoder small = small_encoder();
  const std::int64_t height = 32, width = 48, frame = height * width * 3;
  Frames frames = random_frames(22, height, width);
  const LatentVolume before = small.moments(frames);
  ASSERT_EQ(before.shape[1], 7);
  // Frame 9 belongs to latent 3 of the first clip (frames 9 to 12).
  for (std::int64_t i = 9 * frame; i < 10 * frame; ++i) frames.values[static_cast<std::size_t>(i)] ^= 0x55;
  const LatentVolume after = small.moments(frames);
  EXPECT_EQ(tokens_of(before, 0, 3), tokens_of(after, 0, 3)) << "earlier latents";
  EXPECT_NE(tokens_of(before, 3, 4), tokens_of(after, 3, 4));
  EXPECT_EQ(tokens_of(before, 5, 7), tokens_of(after, 5, 7)) << "the next clip";
}

// The last clip is encoded without the frames that only dropped latents see; a longer clip has the same latents.
TEST(VideoEncoder, PaddingDoesNotReachKeptLatents) {
  Encoder small = small_encoder();
  Frames longer = random_frames(34, 32, 32);
  Frames shorter = longer;
  shorter.shape[0] = 22;
  shorter.values.resize(static_cast<std::size_t>(shorter.shape.elements()));
  PixelTile whole{17, 32, 32};
  small.encoder.prepare(whole);
  const LatentVolume moments = small.moments(shorter);
  EXPECT_EQ(tokens_of(small.moments(longer), 0, 7), tokens_of(moments, 0, 7));
  longer.shape[0] = 39;
  longer.values.resize(static_cast<std::size_t>(longer.shape.elements()), 9);
  EXPECT_EQ(tokens_of(small.moments(longer), 5, 7), tokens_of(moments, 5, 7)) << "seventeen frames give them too";
}

TEST(VideoEncoder, TheSampleHasItsOwnGenerator) {
  Encoder small = small_encoder();
  const LatentVolume moments = small.moments(random_frames(1, 32, 32));
  EXPECT_EQ(draw_latent(moments, Posterior::sample42).values, draw_latent(moments, Posterior::sample42).values);
  const LatentVolume mean = draw_latent(moments, Posterior::mean);
  EXPECT_EQ(mean.values, std::vector<float>(moments.values.begin(), moments.values.begin() + mean.shape.elements()));
}

TEST(VideoEncoder, RefusesWhatItCannotEncode) {
  Encoder small = small_encoder();
  EXPECT_THROW(small.moments(random_frames(1, 16, 64)), UserError);
  EXPECT_THROW(small.moments(random_frames(1, 40, 64)), UserError);
  Frames grey = random_frames(1, 32, 32);
  grey.shape = {3, 32, 32, 1};
  EXPECT_THROW(small.moments(grey), UserError);
}

}  // namespace
}  // namespace h3::test
