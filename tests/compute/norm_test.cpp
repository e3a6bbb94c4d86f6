#include <cmath>

#include "random_tensors.h"

namespace h3::test {
namespace {

using NormTest = CpuOperatorTest;
using ModulationTest = CpuOperatorTest;

TEST_F(NormTest, RmsNormAgreesWithDoublePrecision) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t h : {1, 7, 31, 32, 33, 100, 1537}) {
      const std::int64_t m = 5;
      const OwnedTensor x = random_tensor({m, h}, dtype, 1, 3.0, 4), weight = random_tensor({h}, dtype, 2);
      const OwnedTensor y = poisoned_tensor({m, h}, dtype, 1);
      ops_.rms_norm(q_, x, weight, 1e-5f, NormRounding::once, y);
      const std::vector<double> a = doubles_of(x), w = doubles_of(weight);
      std::vector<double> expected(a.size());
      const auto n = static_cast<std::size_t>(h);
      for (std::size_t r = 0; r < static_cast<std::size_t>(m); ++r) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += a[r * n + i] * a[r * n + i];
        for (std::size_t i = 0; i < n; ++i)
          expected[r * n + i] = a[r * n + i] / std::sqrt(sum / static_cast<double>(h) + 1e-5) * w[i];
      }
      expect_near(y, expected, tolerance_of(dtype), 1e-6);
    }
}

TEST_F(NormTest, RmsNormRoundsBeforeTheWeightWhereAsked) {
  const OwnedTensor x = random_tensor({3, 40}, DType::bf16, 1), weight = random_tensor({40}, DType::bf16, 2);
  const OwnedTensor unit = poisoned_tensor({3, 40}, DType::bf16), y = poisoned_tensor({3, 40}, DType::bf16);
  ops_.rms_norm(q_, x, {}, 1e-6f, NormRounding::once, unit);
  ops_.rms_norm(q_, x, weight, 1e-6f, NormRounding::before_weight, y);
  std::vector<float> expected = values_of(unit);
  const std::vector<float> w = values_of(weight);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = round_to(DType::bf16, expected[i] * w[i % 40]);
  expect_same_bits(y, tensor_of({3, 40}, expected, DType::bf16));
}

TEST_F(NormTest, RmsNormTakesFloat32RowsToHalf) {
  const OwnedTensor x = random_tensor({4, 50}, DType::f32, 1), weight = random_tensor({50}, DType::f32, 2);
  const OwnedTensor y = poisoned_tensor({4, 50}, DType::f32), half = poisoned_tensor({4, 50}, DType::f16);
  ops_.rms_norm(q_, x, weight, 1e-5f, NormRounding::once, y);
  ops_.rms_norm(q_, x, weight, 1e-5f, NormRounding::once, half);
  expect_same_bits(half, tensor_of({4, 50}, values_of(y), DType::f16));
}

TEST_F(NormTest, LayerNormAgreesWithDoublePrecision) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t h : {3, 32, 75, 640}) {
      const OwnedTensor x = random_tensor({4, h}, dtype, 1, 2.0, 3), y = poisoned_tensor({4, h}, dtype);
      const OwnedTensor weight = random_tensor({h}, dtype, 2), bias = random_tensor({h}, dtype, 3);
      ops_.layer_norm(q_, x, weight, bias, 1e-6f, y);
      const std::vector<double> a = doubles_of(x), w = doubles_of(weight), b = doubles_of(bias);
      std::vector<double> expected(a.size());
      const auto n = static_cast<std::size_t>(h);
      for (std::size_t r = 0; r < 4; ++r) {
        double mean = 0, variance = 0;
        for (std::size_t i = 0; i < n; ++i) mean += a[r * n + i] / static_cast<double>(h);
        for (std::size_t i = 0; i < n; ++i) variance += std::pow(a[r * n + i] - mean, 2) / static_cast<double>(h);
        for (std::size_t i = 0; i < n; ++i)
          expected[r * n + i] = (a[r * n + i] - mean) / std::sqrt(variance + 1e-6) * w[i] + b[i];
      }
      expect_near(y, expected, tolerance_of(dtype), 3e-6);
    }
}

TEST_F(NormTest, GroupNormTakesEachFrameAlone) {
  const std::int64_t channels = 6, frames = 3, height = 5, width = 11, groups = 2;
  const OwnedTensor x = random_tensor({channels, frames, height, width}, DType::f32, 1, 2.0, 2);
  const OwnedTensor weight = random_tensor({channels}, DType::f32, 2), bias = random_tensor({channels}, DType::f32, 3);
  for (const bool silu : {false, true}) {
    const OwnedTensor y = poisoned_tensor(x->shape, DType::f32, 1);
    ops_.group_norm(q_, x, weight, bias, groups, 1e-6f, silu, y);
    const std::vector<double> w = doubles_of(weight), b = doubles_of(bias);
    for (std::int64_t f = 0; f < frames; ++f)
      for (std::int64_t g = 0; g < groups; ++g) {
        const auto cut = [&](const Tensor& t) {
          return t.slice(0, g * channels / groups, (g + 1) * channels / groups).slice(1, f, f + 1);
        };
        std::vector<double> v = doubles_of(cut(x));
        double mean = 0, variance = 0;
        for (const double value : v) mean += value / static_cast<double>(v.size());
        for (const double value : v) variance += (value - mean) * (value - mean) / static_cast<double>(v.size());
        for (std::size_t i = 0; i < v.size(); ++i) {
          const std::size_t c =
              static_cast<std::size_t>(g * channels / groups) + i / static_cast<std::size_t>(height * width);
          v[i] = (v[i] - mean) / std::sqrt(variance + 1e-6) * w[c] + b[c];
          if (silu) v[i] /= 1.0 + std::exp(-v[i]);
        }
        expect_near(cut(y), v, 1e-6, 1e-6);
      }
  }
}

TEST_F(NormTest, RowsDoNotDependOnTheirNeighbours) {
  const OwnedTensor x = random_tensor({90, 300}, DType::bf16, 1), weight = random_tensor({300}, DType::bf16, 2);
  const OwnedTensor whole = poisoned_tensor({90, 300}, DType::bf16), parts = poisoned_tensor({90, 300}, DType::bf16);
  ops_.rms_norm(q_, x, weight, 1e-5f, NormRounding::once, whole);
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 14}, {14, 90}})
    ops_.rms_norm(q_, x->rows(begin, end), weight, 1e-5f, NormRounding::once, parts->rows(begin, end));
  expect_same_bits(parts, whole);
}

struct ModulationInputs {
  explicit ModulationInputs(DType dtype)
      : x(random_tensor({6, 45}, dtype, 1, 1.0, 3)),
        table(random_tensor({4, 3 * 45}, dtype, 2)),
        index(index_tensor({3, 0, 0, 2, 3, 1})) {}
  Tensor part(int which) const { return table->slice(1, which * 45, (which + 1) * 45); }
  OwnedTensor x, table, index;
};

TEST_F(ModulationTest, RoundsThreeTimes) {
  for (const DType dtype : kFloatTypes) {
    const ModulationInputs in(dtype);
    const OwnedTensor y = poisoned_tensor({6, 45}, dtype, 2);
    ops_.modulate(q_, in.x, in.part(0), in.part(1), in.index, y);
    std::vector<float> expected = values_of(in.x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Tensor row = in.table->at(in.index->as<std::int32_t>()[i / 45]);
      const std::vector<float> v = values_of(row);
      const float factor = round_to(dtype, 1.0f + v[i % 45]);
      expected[i] = round_to(dtype, round_to(dtype, expected[i] * factor) + v[45 + i % 45]);
    }
    expect_same_bits(y, tensor_of({6, 45}, expected, dtype));
  }
}

TEST_F(ModulationTest, FusedNormGivesTheSameBits) {
  for (const DType dtype : kFloatTypes) {
    const ModulationInputs in(dtype);
    const OwnedTensor weight = random_tensor({45}, dtype, 4), normed = poisoned_tensor({6, 45}, dtype);
    const OwnedTensor two = poisoned_tensor({6, 45}, dtype), one = poisoned_tensor({6, 45}, dtype);
    ops_.rms_norm(q_, in.x, weight, 1e-5f, NormRounding::once, normed);
    ops_.modulate(q_, normed, in.part(0), in.part(1), in.index, two);
    ops_.norm_modulate(q_, in.x, weight, 1e-5f, in.part(0), in.part(1), in.index, one);
    expect_same_bits(one, two);
  }
}

TEST_F(ModulationTest, GatedAddRoundsTheProductAndTheSum) {
  for (const DType dtype : kFloatTypes) {
    const ModulationInputs in(dtype);
    const OwnedTensor a = random_tensor({6, 45}, dtype, 5);
    std::vector<float> expected = values_of(in.x);
    const std::vector<float> update = values_of(a), gate = values_of(in.part(2));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto row = static_cast<std::size_t>(in.index->as<std::int32_t>()[i / 45]);
      expected[i] = round_to(dtype, expected[i] + round_to(dtype, gate[row * 45 + i % 45] * update[i]));
    }
    ops_.gated_add(q_, in.x, in.part(2), in.index, a);
    expect_same_bits(in.x, tensor_of({6, 45}, expected, dtype));
  }
}

TEST_F(ModulationTest, RejectsTableRowsThatDoNotExist) {
  const ModulationInputs in(DType::f32);
  const OwnedTensor y = poisoned_tensor({6, 45}, DType::f32);
  EXPECT_ANY_THROW(ops_.modulate(q_, in.x, in.part(0), in.part(1), index_tensor({0, 0, 4, 0, 0, 0}), y));
  EXPECT_ANY_THROW(ops_.gated_add(q_, in.x, in.part(0), index_tensor({0, -1, 0, 0, 0, 0}), y));
  EXPECT_ANY_THROW(ops_.modulate(q_, in.x, in.part(0), in.part(1), index_tensor({0, 0}), y));
}

}  // namespace
}  // namespace h3::test
