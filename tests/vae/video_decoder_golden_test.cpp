// The video decoder against the reference's frames, one tile and several, one chunk and several.
#include <gtest/gtest.h>

#include <cmath>

#include "media/png.h"
#include "sampling/latent_rows.h"
#include "support/goldens.h"
#include "vae_fixture.h"

namespace h3::test {
namespace {

struct Case {
  std::string name;
  std::int64_t frames, height, width;
};

const Goldens& goldens() {
  static const Goldens g("vae");
  return g;
}

Rows rows_of(const Tensor& latents) {
  const Tensor volume = latents.at(0);
  Rows rows;
  rows.shape = video_rows_shape(volume.shape);
  rows.values.resize(static_cast<std::size_t>(rows.shape.elements()));
  video_rows_from_latent(volume, rows.tensor());
  return rows;
}

const DecodedClip& decoded(const Case& c) {
  static std::map<std::string, DecodedClip> clips;
  if (!clips.contains(c.name)) {
    const auto machine = make_cpu_machine();
    const auto q = machine->make_queue();
    const Tensor latents = goldens().at(c.name + ".latents");
    VideoDecoder decoder(*machine, *q, nano_config().video_vae, nano_weights(Component::video_vae), VaeProfile::F);
    VideoDecodeRequest request;
    request.latent_frames = latents.size(2);
    request.height = c.height;
    request.width = c.width;
    clips[c.name] = decode_alone(*machine, decoder, rows_of(latents), request);
  }
  return clips.at(c.name);
}

std::vector<std::int64_t> kept_frames(const Case& c) {
  const auto& kept = goldens().json().at("meta").at("kept_frames");
  if (kept.contains(c.name)) return kept.at(c.name).get<std::vector<std::int64_t>>();
  std::vector<std::int64_t> all;
  for (std::int64_t f = 0; f < c.frames; ++f) all.push_back(f);
  return all;
}

// The stored samples: rows 3, 11, ... and columns 5, 13, ...
constexpr std::int64_t kFirstRow = 3, kFirstColumn = 5, kStep = 8;

void expect_levels(const std::string& name, const std::vector<std::uint8_t>& actual, const std::uint8_t* expected) {
  std::size_t other = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const int difference = std::abs(static_cast<int>(actual[i]) - static_cast<int>(expected[i]));
    ASSERT_LE(difference, 1) << name << " at " << i;
    other += difference != 0;
  }
  const bool exact = goldens().json().at("tensors").at(name).at("role") == "exact";
  EXPECT_LE(static_cast<double>(other), exact ? 0 : 0.0005 * static_cast<double>(actual.size())) << name;
}

class DecoderGolden : public testing::TestWithParam<Case> {};

TEST_P(DecoderGolden, RawFrames) {
  const Case& c = GetParam();
  const DecodedClip& clip = decoded(c);
  ASSERT_EQ(clip.frames, c.frames);
  ASSERT_EQ(static_cast<std::int64_t>(clip.raw.size()), c.frames);
  EXPECT_EQ(clip.report.nan_values, 0);
  std::vector<float> samples;
  for (std::int64_t channel = 0; channel < 3; ++channel)
    for (const std::int64_t f : kept_frames(c))
      for (std::int64_t y = kFirstRow; y < c.height; y += kStep)
        for (std::int64_t x = kFirstColumn; x < c.width; x += kStep)
          samples.push_back(clip.raw.at(f)[static_cast<std::size_t>((channel * c.height + y) * c.width + x)]);
  const auto n = static_cast<std::int64_t>(samples.size());
  goldens().expect_close(c.name + ".raw_sub", Tensor(samples.data(), {n}, DType::f32));
}

TEST_P(DecoderGolden, EightBits) {
  const Case& c = GetParam();
  const DecodedClip& clip = decoded(c);
  std::vector<std::uint8_t> samples;
  for (const std::int64_t f : kept_frames(c))
    for (std::int64_t y = kFirstRow; y < c.height; y += kStep)
      for (std::int64_t x = kFirstColumn; x < c.width; x += kStep)
        for (std::int64_t channel = 0; channel < 3; ++channel)
          samples.push_back(clip.u8[static_cast<std::size_t>(((f * c.height + y) * c.width + x) * 3 + channel)]);
  const Tensor expected = goldens().at(c.name + ".u8_sub");
  ASSERT_EQ(static_cast<std::int64_t>(samples.size()), expected.elements());
  expect_levels(c.name + ".u8_sub", samples, expected.as<std::uint8_t>());
}

INSTANTIATE_TEST_SUITE_P(Nano, DecoderGolden,
                         testing::Values(Case{"decode22", 22, 192, 256}, Case{"decode39", 39, 192, 256},
                                         Case{"decode56", 56, 192, 256}, Case{"tiled", 22, 288, 288},
                                         Case{"tiled_wide", 22, 64, 480}),
                         [](const auto& c) { return c.param.name; });

TEST(DecoderGolden, AWholeRawFrame) {
  const DecodedClip& clip = decoded({"decode22", 22, 192, 256});
  std::vector<float> frame = clip.raw.at(21);
  goldens().expect_close("decode22.raw_frame21", Tensor(frame.data(), {3, 192, 256}, DType::f32));
}

void expect_picture(const std::string& name, const Case& c, const std::vector<std::int64_t>& frames) {
  const DecodedClip& clip = decoded(c);
  const auto file = goldens().json().at("frames").at(name).at("file").get<std::string>();
  const Image stacked = read_png(source_path("tests/goldens/" + file));
  const auto size = static_cast<std::size_t>(c.height * c.width * 3);
  std::vector<std::uint8_t> pixels;
  for (const std::int64_t f : frames) {
    const auto* from = clip.u8.data() + static_cast<std::size_t>(f) * size;
    pixels.insert(pixels.end(), from, from + size);
  }
  ASSERT_EQ(stacked.rgb.size(), pixels.size());
  expect_levels(name, pixels, stacked.rgb.data());
}

TEST(DecoderGolden, WholePictures) {
  expect_picture("png:decode22.u8", {"decode22", 22, 192, 256}, {0, 7, 14, 21});
  expect_picture("png:tiled.u8_frame10", {"tiled", 22, 288, 288}, {10});
}

}  // namespace
}  // namespace h3::test
