#include <cmath>
#include <limits>

#include "random_tensors.h"

namespace h3::test {
namespace {

using ElementwiseTest = CpuOperatorTest;
using MovementTest = CpuOperatorTest;
using SamplingTest = CpuOperatorTest;

double silu(double x) {
  return x / (1.0 + std::exp(-x));
}

TEST_F(ElementwiseTest, SwigluRoundsTheGate) {
  for (const DType dtype : kFloatTypes) {
    const std::int64_t m = 7, f = 37;
    const OwnedTensor u = random_tensor({m, 2 * f}, dtype, 1, 3.0, 2), y = poisoned_tensor({m, f}, dtype, 3);
    ops_.swiglu(q_, u, y);
    std::vector<double> expected;
    for (std::int64_t r = 0; r < m; ++r) {
      const std::vector<double> row = doubles_of(u->at(r));
      for (std::size_t i = 0; i < static_cast<std::size_t>(f); ++i) {
        const float gate = round_to(dtype, static_cast<float>(silu(row[i])));
        expected.push_back(static_cast<double>(gate) * row[i + static_cast<std::size_t>(f)]);
      }
    }
    // The gate may fall on the neighbouring half where the exponential differs in its last bit.
    expect_near(y, expected, 3 * tolerance_of(dtype), 1e-7);
  }
}

TEST_F(ElementwiseTest, HalvesAddUpToTheFloat) {
  const std::int64_t m = 5, n = 33;
  const OwnedTensor x = random_tensor({m, n}, DType::f32, 1, 3.0, 2), y = poisoned_tensor({m, 3 * n}, DType::f16, 3);
  ops_.split_halves(q_, x, y);
  for (std::int64_t r = 0; r < m; ++r) {
    const std::vector<double> in = doubles_of(x->at(r)), out = doubles_of(y->at(r));
    for (std::size_t i = 0, k = static_cast<std::size_t>(n); i < k; ++i) {
      EXPECT_EQ(out[i], static_cast<double>(round_to(DType::f16, static_cast<float>(in[i]))));
      EXPECT_EQ(out[k + i], out[i]);
      EXPECT_NEAR(out[i] + out[2 * k + i], in[i], 0x1p-22 * std::abs(in[i]) + 0x1p-25);
    }
  }
}

TEST_F(ElementwiseTest, ActivationsAgreeWithDoublePrecision) {
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor x = random_tensor({5, 999}, dtype, 1, 4.0, 1);
    const std::vector<double> v = doubles_of(x);
    const auto check = [&](Activation kind, auto f) {
      const OwnedTensor y = poisoned_tensor({5, 999}, dtype);
      ops_.activate(q_, kind, x, y);
      std::vector<double> expected(v.size());
      std::transform(v.begin(), v.end(), expected.begin(), f);
      expect_near(y, expected, 2 * tolerance_of(dtype), 4e-7);
      const OwnedTensor in_place = copy_of(x);
      ops_.activate(q_, kind, in_place, in_place);
      expect_same_bits(in_place, y);
    };
    check(Activation::silu, silu);
    check(Activation::gelu_tanh,
          [](double a) { return 0.5 * a * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (a + 0.044715 * a * a * a))); });
    check(Activation::gelu_erf, [](double a) { return 0.5 * a * (1.0 + std::erf(a / std::sqrt(2.0))); });
  }
}

TEST_F(ElementwiseTest, ActivationsStandExtremes) {
  const float huge = std::numeric_limits<float>::max();
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf}) {
    const OwnedTensor x = tensor_of({6}, {-huge, -100.0f, 0.0f, 100.0f, huge, NAN});
    ops_.activate(q_, kind, x, x);
    const std::vector<float> y = values_of(x);
    EXPECT_EQ(std::abs(y[0]), 0.0f);
    EXPECT_NEAR(y[1], 0.0f, 1e-30f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 100.0f);
    EXPECT_EQ(y[4], huge);
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST_F(ElementwiseTest, AddRoundsOnce) {
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor x = random_tensor({3, 50}, dtype, 1, 1.0, 2), a = random_tensor({3, 50}, dtype, 2, 1.0, 5);
    std::vector<float> expected = values_of(x);
    const std::vector<float> other = values_of(a);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = round_to(dtype, expected[i] + other[i]);
    ops_.add(q_, x, a);
    expect_same_bits(x, tensor_of({3, 50}, expected, dtype));
  }
}

TEST_F(ElementwiseTest, ScaledAddRoundsProductAndSum) {
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor x = random_tensor({3, 50}, DType::f32, 1), a = random_tensor({3, 50}, dtype, 2);
    const OwnedTensor scale = random_tensor({50}, DType::f32, 3);
    std::vector<float> expected = values_of(x);
    const std::vector<float> update = values_of(a), s = values_of(scale);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const volatile float product = update[i] * s[i % 50];
      expected[i] += product;
    }
    ops_.scaled_add(q_, x, a, scale);
    expect_same_bits(x, tensor_of({3, 50}, expected));
  }
}

TEST_F(ElementwiseTest, SanitizeReplacesWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor x = tensor_of({2, 3}, {NAN, inf, -inf, 1.5f, -0.0f, 3.0f}, dtype);
    ops_.sanitize(q_, x);
    const float limit = dtype == DType::f16 ? 65504.0f : dtype == DType::bf16 ? 0x1.fep127f : 0x1.fffffep127f;
    expect_same_bits(x, tensor_of({2, 3}, {0.0f, limit, -limit, 1.5f, -0.0f, 3.0f}, dtype));
  }
}

TEST_F(ElementwiseTest, ClampKeepsNan) {
  const OwnedTensor x = tensor_of({1, 1, 4}, {-2.0f, 0.5f, 7.0f, NAN});
  ops_.clamp(q_, x, -1.0f, 1.0f);
  const std::vector<float> y = values_of(x);
  EXPECT_EQ(y[0], -1.0f);
  EXPECT_EQ(y[1], 0.5f);
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST_F(ElementwiseTest, MeanAddsInOrder) {
  const OwnedTensor a = random_tensor({2, 3, 77}, DType::f32, 1, 1.0, 1), b = random_tensor({2, 3, 77}, DType::f32, 2);
  const OwnedTensor c = random_tensor({2, 3, 77}, DType::f32, 3), y = poisoned_tensor({2, 3, 77}, DType::f32);
  const std::vector<Tensor> all = {a, b, c};
  ops_.mean_of(q_, all, y);
  const std::vector<float> u = values_of(a), v = values_of(b), w = values_of(c);
  std::vector<float> expected(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) expected[i] = ((u[i] + v[i]) + w[i]) / 3.0f;
  expect_same_bits(y, tensor_of({2, 3, 77}, expected));
}

TEST_F(MovementTest, CastRoundsToNearestEven) {
  for (const DType from : kFloatTypes)
    for (const DType to : kFloatTypes) {
      const OwnedTensor x = random_tensor({4, 60}, from, 1, 1.0, 2), y = poisoned_tensor({4, 60}, to, 1);
      ops_.cast(q_, x, y);
      expect_same_bits(y, tensor_of({4, 60}, values_of(x), to));
    }
}

TEST_F(MovementTest, CopiesAndGathersRows) {
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor x = random_tensor({5, 33}, dtype, 1, 1.0, 3), y = poisoned_tensor({5, 33}, dtype, 8);
    ops_.copy_rows(q_, x, y);
    expect_same_bits(y, x);
    const OwnedTensor index = index_tensor({4, 4, 0, 2}), z = poisoned_tensor({4, 33}, dtype, 2);
    ops_.gather(q_, x, index, z);
    for (const auto& [row, source] : {std::pair{0, 4}, {1, 4}, {2, 0}, {3, 2}})
      expect_same_bits(z->at(row), x->at(source));
    EXPECT_ANY_THROW(ops_.gather(q_, x, index_tensor({0, 1, 2, 5}), z));
  }
}

TEST_F(MovementTest, FillsZeroBetweenGaps) {
  const OwnedTensor x = poisoned_tensor({3, 5}, DType::bf16, 2);
  ops_.fill_zero(q_, x);
  for (const float v : values_of(x)) EXPECT_EQ(v, 0.0f);
  EXPECT_TRUE(std::isnan(to_f32(x->as<bf16_t>()[5])));
}

TEST_F(SamplingTest, EulerStepRoundsEachOperation) {
  const OwnedTensor x = random_tensor({9, 32}, DType::f32, 1, 1.0, 4), v = random_tensor({9, 32}, DType::f32, 2);
  const OwnedTensor again = copy_of(x), clean = poisoned_tensor({9, 32}, DType::f32);
  std::vector<float> x0 = values_of(x), next = x0;
  const std::vector<float> velocity = values_of(v);
  const float one_minus_t = 0.7f, r = 0.3f;
  for (std::size_t i = 0; i < x0.size(); ++i) {
    const volatile float step = one_minus_t * velocity[i];
    x0[i] += step;
    const volatile float kept = r * next[i], moved = (1.0f - r) * x0[i];
    next[i] = kept + moved;
  }
  ops_.euler_step(q_, x, v, one_minus_t, r, clean);
  expect_same_bits(x, tensor_of({9, 32}, next));
  expect_same_bits(clean, tensor_of({9, 32}, x0));
  ops_.euler_step(q_, again, v, one_minus_t, r, {});
  expect_same_bits(again, x);
  ops_.euler_step(q_, again, v, one_minus_t, 0.0f, clean);
  expect_same_bits(again, clean);
}

TEST_F(SamplingTest, MultistepCorrection) {
  const OwnedTensor x = random_tensor({3, 10}, DType::f32, 1), clean = random_tensor({3, 10}, DType::f32, 2);
  const OwnedTensor previous = random_tensor({3, 10}, DType::f32, 3);
  std::vector<float> expected = values_of(x);
  const std::vector<float> now = values_of(clean), before = values_of(previous);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const volatile float change = -0.25f * (before[i] - now[i]);
    expected[i] += change;
  }
  ops_.multistep_correction(q_, x, clean, previous, -0.25f);
  expect_same_bits(x, tensor_of({3, 10}, expected));
}

}  // namespace
}  // namespace h3::test
