#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "random_tensors.h"

namespace h3::test {
namespace {

using VideoTest = CpuOperatorTest;

TEST_F(VideoTest, PadsByReflection) {
  std::vector<float> ramp(16);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  const OwnedTensor x = tensor_of({1, 1, 4, 4}, ramp), y = poisoned_tensor({1, 1, 6, 6}, DType::f32);
  ops_.pad_reflect(q_, x, 1, 1, y);
  expect_same_bits(y, tensor_of({1, 1, 6, 6}, {5, 4, 5, 6,  7,  6,  1,  0,  1,  2,  3,  2,  5, 4, 5, 6,  7,  6,
                                               9, 8, 9, 10, 11, 10, 13, 12, 13, 14, 15, 14, 9, 8, 9, 10, 11, 10}));
  const OwnedTensor corner = poisoned_tensor({1, 1, 5, 5}, DType::f32);
  ops_.pad_reflect(q_, x, 0, 0, corner);
  expect_same_bits(corner, tensor_of({1, 1, 5, 5}, {0,  1,  2,  3,  2,  4,  5,  6, 7, 6,  8,  9, 10,
                                                    11, 10, 12, 13, 14, 15, 14, 8, 9, 10, 11, 10}));
  const OwnedTensor wide = poisoned_tensor({1, 1, 4, 9}, DType::f32);
  EXPECT_ANY_THROW(ops_.pad_reflect(q_, x, 0, 1, wide));
}

TEST_F(VideoTest, UnpatchifyPutsEveryValueInItsPlace) {
  for (const DType dtype : kFloatTypes) {
    const Operators::Patch patch{2, 3, 2, 4, 16, 16};
    const OwnedTensor tokens = random_tensor({12, 3 * 4 * 256}, dtype, 1, 1.0, 5);
    const OwnedTensor pixels = poisoned_tensor({3, 8, 48, 32}, dtype, 3);
    ops_.unpatchify(q_, tokens, patch, pixels);
    const std::vector<float> in = values_of(tokens), out = values_of(pixels);
    for (std::size_t token = 0; token < 12; ++token)
      for (std::size_t value = 0; value < 3072; ++value) {
        const std::size_t c = value / 1024, dt = value / 256 % 4, dy = value / 16 % 16, dx = value % 16;
        const std::size_t t = token / 6, y = token / 2 % 3, x = token % 2;
        ASSERT_EQ(out[((c * 8 + 4 * t + dt) * 48 + 16 * y + dy) * 32 + 16 * x + dx], in[token * 3072 + value]);
      }
  }
}

TEST_F(VideoTest, CrossFadesAlongEachAxis) {
  for (const DType dtype : kFloatTypes)
    for (int axis = 0; axis < 3; ++axis) {
      const OwnedTensor older = random_tensor({5, 6, 7}, dtype, 1, 1.0, 2),
                        y = random_tensor({5, 6, 7}, dtype, 2, 1.0, 4);
      std::vector<float> expected = values_of(y);
      const std::vector<float> from = values_of(older);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t p = axis == 0 ? i / 42 : axis == 1 ? i / 7 % 6 : i % 7;
        const float b = round_to(dtype, static_cast<float>(p) / static_cast<float>(y->size(axis)));
        const float a = round_to(dtype, 1.0f - b);
        expected[i] = round_to(dtype, round_to(dtype, from[i] * a) + round_to(dtype, expected[i] * b));
      }
      ops_.cross_fade(q_, older, axis, y);
      expect_same_bits(y, tensor_of({5, 6, 7}, expected, dtype));
    }
}

// spec/vae.md 10.3 lists the weights of five frames.
TEST_F(VideoTest, CrossFadeWeightsAreThoseOfTheSpecification) {
  const OwnedTensor ones = tensor_of({5, 1, 1}, {1, 1, 1, 1, 1}), zeros = tensor_of({5, 1, 1}, {0, 0, 0, 0, 0});
  ops_.cross_fade(q_, ones, 0, zeros);
  expect_same_bits(zeros, tensor_of({5, 1, 1}, {1.0f, 0.800000012f, 0.600000024f, 0.399999976f, 0.199999988f}));
  const OwnedTensor half = tensor_of({5, 1, 1}, {1, 1, 1, 1, 1}, DType::f16);
  const OwnedTensor half_zeros = tensor_of({5, 1, 1}, {0, 0, 0, 0, 0}, DType::f16);
  ops_.cross_fade(q_, half, 0, half_zeros);
  expect_same_bits(half_zeros,
                   tensor_of({5, 1, 1}, {1.0f, 0.799804688f, 0.600097656f, 0.399902344f, 0.200195312f}, DType::f16));
}

TEST_F(VideoTest, FadesAcrossAViewWithoutContiguousColumns) {
  const OwnedTensor older = random_tensor({2, 3, 4}, DType::f32, 1), y = random_tensor({2, 3, 4}, DType::f32, 2);
  const OwnedTensor same = copy_of(y);
  const auto transposed = [](const Tensor& t) {
    Tensor view = t;
    std::swap(view.shape[1], view.shape[2]);
    std::swap(view.strides[1], view.strides[2]);
    return view;
  };
  ops_.cross_fade(q_, older, 1, y);
  ops_.cross_fade(q_, transposed(older), 2, transposed(same));
  expect_same_bits(same, y);
}

TEST_F(VideoTest, FramesBecomeBytes) {
  const std::array<float, 3> mean{0.485f, 0.456f, 0.406f}, std{0.229f, 0.224f, 0.225f};
  const std::int64_t frames = 2, height = 3, width = 5;
  const OwnedTensor x = random_tensor({3, frames, height, width}, DType::f32, 1, 2.0, 2);
  const float inf = std::numeric_limits<float>::infinity();
  x->as<float>()[0] = NAN;
  x->as<float>()[1] = inf;
  x->as<float>()[2] = -inf;
  const std::vector<float> v = values_of(x);
  for (const bool truncate : {false, true}) {
    OwnedTensor y = poisoned_tensor({frames, height, width, 3}, DType::u8), nans = index_tensor({40});
    ops_.frames_to_u8(q_, x, mean, std, truncate, y, nans);
    EXPECT_EQ(nans->as<std::int32_t>()[0], 41);
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < 30; ++i) {
        const volatile float scaled = v[c * 30 + i] * std[c];
        const float value =
            std::isnan(v[c * 30 + i]) ? 0.0f : std::min(std::max(scaled + mean[c], 0.0f), 1.0f) * 255.0f;
        const float level = truncate ? std::floor(value) : std::nearbyint(value);
        ASSERT_EQ(static_cast<float>(y->as<std::uint8_t>()[i * 3 + c]), level) << c << " " << i;
      }
  }
}

TEST_F(VideoTest, LevelsRoundHalfToEven) {
  const OwnedTensor x =
      tensor_of({3, 1, 1, 2}, {0.5f / 255.0f, 1.5f / 255.0f, 2.5f / 255.0f, 3.5f / 255.0f, 0.0f, 1.0f});
  const std::array<float, 3> zero{0, 0, 0}, one{1, 1, 1};
  const OwnedTensor y = poisoned_tensor({1, 1, 2, 3}, DType::u8), nans = index_tensor({0});
  ops_.frames_to_u8(q_, x, zero, one, false, y, nans);
  const auto* bytes = y->as<std::uint8_t>();
  for (int i = 0; i < 6; ++i) {
    const float exact = x->as<float>()[i % 3 * 2 + i / 3] * 255.0f;
    EXPECT_EQ(static_cast<float>(bytes[i]), std::nearbyint(exact));
  }
  EXPECT_EQ(nans->as<std::int32_t>()[0], 0);
}

// The pixels of every reference decode become the reference's bytes.
TEST_F(VideoTest, FramesBecomeTheBytesOfTheReference) {
  const Goldens goldens("vae");
  const std::array<float, 3> mean{0.485f, 0.456f, 0.406f}, std{0.229f, 0.224f, 0.225f};
  for (const std::string name : {"decode22", "decode39", "decode56", "tiled", "tiled_wide"}) {
    const Tensor expected = goldens.at(name + ".u8_sub");
    const OwnedTensor y = poisoned_tensor(expected.shape, DType::u8), nans = index_tensor({0});
    ops_.frames_to_u8(q_, goldens.at(name + ".raw_sub"), mean, std, false, y, nans);
    EXPECT_EQ(std::memcmp(y->data, expected.data, expected.bytes()), 0) << name;
    EXPECT_EQ(nans->as<std::int32_t>()[0], 0);
  }
}

}  // namespace
}  // namespace h3::test
