#include "sampling/latent_rows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sampling/equal_bits.h"
#include "support/goldens.h"

namespace h3 {
namespace {

struct Values {
  explicit Values(Shape shape, float first = 0)
      : numbers(static_cast<std::size_t>(shape.elements())), tensor(numbers.data(), shape, DType::f32) {
    std::iota(numbers.begin(), numbers.end(), first);
  }
  Values(const Values&) = delete;
  std::vector<float> numbers;
  Tensor tensor;
};

TEST(LatentRows, PacksVideoAsSpecified) {
  const std::int64_t c = 3, t = 2, h = 4, w = 6;
  Values latent({c, t, h, w}), rows({t * 6, c * 4}, 5000);
  video_rows_from_latent(latent.tensor, rows.tensor);
  for (std::int64_t f = 0; f < t; ++f)
    for (std::int64_t y = 0; y < h / 2; ++y)
      for (std::int64_t x = 0; x < w / 2; ++x)
        for (std::int64_t k = 0; k < c * 4; ++k) {
          const std::int64_t row = (f * (h / 2) + y) * (w / 2) + x;
          const std::int64_t from = ((k / 4 * t + f) * h + 2 * y + k % 4 / 2) * w + 2 * x + k % 2;
          EXPECT_EQ(rows.numbers[static_cast<std::size_t>(row * c * 4 + k)], static_cast<float>(from));
        }
}

TEST(LatentRows, PacksAudioAsSpecified) {
  const std::int64_t c = 3, a = 5;
  Values latent({2, c, a}), rows({2 * a, c}, 5000);
  audio_rows_from_latent(latent.tensor, rows.tensor);
  for (std::int64_t side = 0; side < 2; ++side)
    for (std::int64_t k = 0; k < a; ++k)
      for (std::int64_t j = 0; j < c; ++j) {
        EXPECT_EQ(rows.numbers[static_cast<std::size_t>((side * a + k) * c + j)],
                  static_cast<float>((side * c + j) * a + k));
      }
}

TEST(LatentRows, UnpackingReversesPacking) {
  Values latent({24, 3, 10, 14}), rows({3 * 35, 96}, 1e6f), again({24, 3, 10, 14}, 2e6f);
  video_rows_from_latent(latent.tensor, rows.tensor);
  video_latent_from_rows(rows.tensor, again.tensor);
  EXPECT_EQ(latent.numbers, again.numbers);
  Values sound({2, 32, 37}), sound_rows({74, 32}, 1e6f), sound_again({2, 32, 37}, 2e6f);
  audio_rows_from_latent(sound.tensor, sound_rows.tensor);
  audio_latent_from_rows(sound_rows.tensor, sound_again.tensor);
  EXPECT_EQ(sound.numbers, sound_again.numbers);
}

TEST(LatentRows, UnpacksTheLatentsOfARenderAsTheReferenceDoes) {
  const test::Goldens goldens("renders");
  const Tensor latents = goldens.at("t2va_22.latents");  // [1, 24, 7, 12, 16]
  Values video({24, 7, 12, 16}), audio({2, 32, 37});
  video_latent_from_rows(goldens.at("t2va_22.rows.step8.video"), video.tensor);
  test::expect_equal_bits(video.numbers, test::floats_of(latents), "latents");
  audio_latent_from_rows(goldens.at("t2va_22.rows.step8.audio"), audio.tensor);
  test::expect_equal_bits(audio.numbers, test::floats_of(goldens.at("t2va_22.audio_latents")), "audio_latents");
}

TEST(LatentRows, RefusesShapesThatDoNotBelongTogether) {
  Values odd({24, 1, 3, 4}), latent({24, 1, 4, 4}), rows({3, 96});
  EXPECT_ANY_THROW(video_rows_shape(odd.tensor.shape));
  EXPECT_ANY_THROW(video_rows_from_latent(latent.tensor, rows.tensor));
  EXPECT_ANY_THROW(audio_rows_from_latent(latent.tensor, rows.tensor));
}

}  // namespace
}  // namespace h3
