#include "sampling/noise.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "sampling/equal_bits.h"
#include "sampling/latent_rows.h"
#include "sampling/normal_generator.h"
#include "support/goldens.h"

namespace h3 {
namespace {

std::vector<float> draw(NormalGenerator& generator, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  generator.fill(values);
  return values;
}

std::vector<float> packed(std::span<const float> latent, const Shape& shape) {
  std::vector<float> copy(latent.begin(), latent.end());
  std::vector<float> rows(copy.size());
  video_rows_from_latent(Tensor(copy.data(), shape, DType::f32),
                         Tensor(rows.data(), video_rows_shape(shape), DType::f32));
  return rows;
}

NoiseRequest small_request(NoiseRecipe recipe) {
  NoiseRequest request;
  request.recipe = recipe;
  request.seed = 42;
  request.video = {24, 7, 4, 6};
  request.audio_latents = 9;
  request.conditions = {{24, 1, 4, 6}, {24, 12, 6, 8}};
  return request;
}

TEST(Noise, DrawsTheReferencesTextRequests) {
  const test::Goldens goldens("noise");
  for (const std::string seed : {"0", "42", "9223372036854775813"}) {
    NoiseRequest request;
    request.seed = std::stoull(seed);
    request.video = {24, 7, 12, 16};
    request.audio_latents = 37;
    const Noise noise = draw_noise(request);
    const std::string name = "t2va_192x256_22.seed" + seed;
    const auto video = test::floats_of(goldens.at(name + ".draw0.video"));
    test::expect_equal_bits(noise.video, packed(video, request.video), name + ".draw0.video");
    test::expect_equal_bits(noise.audio, test::floats_of(goldens.at(name + ".draw1.audio")), name + ".draw1.audio");
    if (seed == "42") {
      test::expect_equal_bits(noise.video, test::floats_of(goldens.at(name + ".rows.video")), name + ".rows.video");
    }
  }
}

TEST(Noise, DrawsConditionsBeforeTheTarget) {
  const test::Goldens goldens("noise");
  const std::string name = "fl2va_160x224_39_both.seed42.draw";
  NoiseRequest request;
  request.seed = 42;
  request.video = {24, 12, 10, 14};
  request.audio_latents = 65;
  request.conditions = {{24, 1, 10, 14}, {24, 1, 10, 14}};
  const Noise noise = draw_noise(request);
  ASSERT_EQ(noise.conditions.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string draw_name = name + std::to_string(i) + ".condition" + std::to_string(i);
    const auto expected = test::floats_of(goldens.at(draw_name));
    test::expect_equal_bits(noise.conditions[i], packed(expected, request.conditions[i]), draw_name);
  }
  const auto video = test::floats_of(goldens.at(name + "2.video"));
  test::expect_equal_bits(noise.video, packed(video, request.video), name + "2.video");
  test::expect_equal_bits(noise.audio, test::floats_of(goldens.at(name + "3.audio")), name + "3.audio");
}

TEST(Noise, OriginalRecipeStartsAfreshForEachPurpose) {
  const NoiseRequest request = small_request(NoiseRecipe::original);
  const Noise noise = draw_noise(request);
  NormalGenerator video(42), audio(42);
  EXPECT_EQ(noise.video, packed(draw(video, request.video.elements()), request.video));
  EXPECT_EQ(noise.audio, draw(audio, 2 * 9 * 32));
  for (std::size_t i = 0; i < 2; ++i) {
    // The target's 7 frames and one a condition are 9, fewer than the second condition's own 12.
    const Shape kept = request.conditions[i];
    Shape drawn = kept;
    drawn[1] = i == 0 ? 9 : 12;
    NormalGenerator generator(42);
    std::vector<float> values = draw(generator, drawn.elements());
    const Tensor all(values.data(), drawn, DType::f32);
    const std::vector<float> first = test::values_of(all.slice(1, 0, kept[1]));
    EXPECT_EQ(noise.conditions[i], packed(first, kept));
  }
}

TEST(Noise, ComfyRecipeDrawsConditionsAsRowsAndAudioByChannel) {
  const NoiseRequest request = small_request(NoiseRecipe::comfy);
  const Noise noise = draw_noise(request);
  NormalGenerator stream(42);
  EXPECT_EQ(noise.video, packed(draw(stream, request.video.elements()), request.video));
  std::vector<float> audio = draw(stream, 32 * 2 * 9);
  std::vector<float> rows;
  for (std::size_t row = 0; row < 18; ++row)
    for (std::size_t c = 0; c < 32; ++c) rows.push_back(audio[c * 18 + row]);
  EXPECT_EQ(noise.audio, rows);
  for (std::size_t i = 0; i < 2; ++i) {
    NormalGenerator generator(42);
    EXPECT_EQ(noise.conditions[i], draw(generator, request.conditions[i].elements()));
  }
}

TEST(Noise, AGivenLatentSkipsItsDraw) {
  NoiseRequest request = small_request(NoiseRecipe::diffusers);
  request.conditions.clear();
  std::vector<float> given(static_cast<std::size_t>(request.video.elements()), 0.25f);
  request.given_video = Tensor(given.data(), request.video, DType::f32);
  Noise noise = draw_noise(request);
  NormalGenerator stream(42);
  EXPECT_EQ(noise.video, given);
  EXPECT_EQ(noise.audio, draw(stream, 2 * 9 * 32));

  request.given_video = {};
  std::vector<float> sound(2 * 32 * 9);
  for (std::size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i);
  request.given_audio = Tensor(sound.data(), {2, 32, 9}, DType::f32);
  noise = draw_noise(request);
  NormalGenerator again(42);
  EXPECT_EQ(noise.video, packed(draw(again, request.video.elements()), request.video));
  EXPECT_EQ(noise.audio[1], 9.0f);            // left, latent 0, channel 1
  EXPECT_EQ(noise.audio[9 * 32], 9.0f * 32);  // right, latent 0, channel 0
  request.given_audio = Tensor(sound.data(), {2, 16, 18}, DType::f32);
  EXPECT_ANY_THROW(draw_noise(request));
}

TEST(Noise, KeepsTheStateOfItsStream) {
  const NoiseRequest request = small_request(NoiseRecipe::diffusers);
  const Noise noise = draw_noise(request);
  NormalGenerator restored = NormalGenerator::from_state(noise.generator_state, "test");
  NormalGenerator stream(42);
  for (const Shape& condition : request.conditions) draw(stream, condition.elements());
  draw(stream, request.video.elements());
  draw(stream, 2 * 9 * 32);
  EXPECT_EQ(draw(restored, 100), draw(stream, 100));
}

TEST(Noise, MixesConditionsAsTheReferenceDoes) {
  const test::Goldens goldens("renders");
  const std::string r = "fl2va_22.";
  NoiseRequest request;
  request.seed = 42;
  request.video = {24, 7, 12, 16};
  request.audio_latents = 37;
  request.conditions = {{24, 1, 12, 16}, {24, 1, 12, 16}};
  const Noise noise = draw_noise(request);
  const auto initial = test::floats_of(goldens.at(r + "rows.initial.video"));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto clean = test::floats_of(goldens.at(r + "condition" + std::to_string(i)));
    std::vector<float> rows = packed(clean, request.conditions[i]);
    mix_condition_noise(NoiseRecipe::diffusers, noise.conditions[i], rows);
    test::expect_equal_bits(rows, initial.subspan(begin, rows.size()), r + "condition" + std::to_string(i));
    begin += rows.size();
  }
  test::expect_equal_bits(noise.video, initial.subspan(begin), r + "rows.initial.video");
  test::expect_equal_bits(noise.audio, test::floats_of(goldens.at(r + "rows.initial.audio")), r + "rows.initial.audio");
}

TEST(Noise, ComfyMixesWithItsOwnFactor) {
  const std::vector<float> noise{2.0f, -3.0f};
  std::vector<float> rows{1.0f, 5.0f}, other = rows;
  mix_condition_noise(NoiseRecipe::comfy, noise, rows);
  mix_condition_noise(NoiseRecipe::original, noise, other);
  EXPECT_EQ(rows[0], 0.999f * 1.0f + 0.001f * 2.0f);
  EXPECT_EQ(other[1], 0.999f * 5.0f + (1.0f - 0.999f) * -3.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(0.999f), 0x3f7fbe77u);
}

}  // namespace
}  // namespace h3
