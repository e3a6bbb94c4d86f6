#include <cmath>

#include "random_tensors.h"

namespace h3::test {
namespace {

using LinearTest = CpuOperatorTest;

// x . weight^T + bias in double.
std::vector<double> naive_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::vector<double> a = doubles_of(x), w = doubles_of(weight);
  const std::vector<double> b = bias ? doubles_of(bias) : std::vector<double>(static_cast<std::size_t>(weight.size(0)));
  const auto m = static_cast<std::size_t>(x.size(0)), k = static_cast<std::size_t>(x.size(1)), n = b.size();
  std::vector<double> y(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = b[j];
      for (std::size_t l = 0; l < k; ++l) sum += a[i * k + l] * w[j * k + l];
      y[i * n + j] = sum;
    }
  return y;
}

TEST_F(LinearTest, AgreesWithDoublePrecision) {
  const std::vector<std::array<std::int64_t, 3>> shapes = {{1, 1, 1},    {7, 24, 17},   {5, 129, 65},
                                                           {241, 33, 3}, {12, 300, 96}, {2, 1000, 31}};
  for (const DType dtype : kFloatTypes)
    for (const auto& [m, k, n] : shapes) {
      const OwnedTensor x = random_tensor({m, k}, dtype, 1, 1.0, 5), w = random_tensor({n, k}, dtype, 2, 0.1, 3);
      const OwnedTensor bias = random_tensor({n}, DType::f32, 3);
      const OwnedTensor y = poisoned_tensor({m, n}, dtype, 2);
      ops_.linear(q_, x, {w, bias, n}, y);
      expect_near(y, naive_linear(x, w, bias), tolerance_of(dtype), 2e-8 * static_cast<double>(k) + 1e-6);
    }
}

TEST_F(LinearTest, GivesFloat32FromHalfInputsAndTakesNoBias) {
  const OwnedTensor x = random_tensor({9, 70}, DType::bf16, 1), w = random_tensor({20, 70}, DType::bf16, 2);
  const OwnedTensor y = poisoned_tensor({9, 20}, DType::f32);
  ops_.linear(q_, x, {w, {}, 20}, y);
  expect_near(y, naive_linear(x, w, {}), tolerance_of(DType::f32), 1e-5);
}

TEST_F(LinearTest, TakesHalfBias) {
  const OwnedTensor x = random_tensor({4, 32}, DType::f16, 1), w = random_tensor({5, 32}, DType::f16, 2);
  const OwnedTensor bias = random_tensor({5}, DType::f16, 3);
  const OwnedTensor y = poisoned_tensor({4, 5}, DType::f16);
  ops_.linear(q_, x, {w, bias, 5}, y);
  expect_near(y, naive_linear(x, w, bias), tolerance_of(DType::f16), 1e-5);
}

// The same bits whatever rows and outputs share a call.
TEST_F(LinearTest, DoesNotDependOnTheSplit) {
  for (const DType dtype : kFloatTypes) {
    const std::int64_t m = 301, k = 275, n = 150;
    const OwnedTensor x = random_tensor({m, k}, dtype, 1), weight = random_tensor({n, k}, dtype, 2);
    const OwnedTensor bias = random_tensor({n}, dtype, 3);
    const LinearWeights w{weight, bias, n};
    const OwnedTensor whole = poisoned_tensor({m, n}, DType::f32), parts = poisoned_tensor({m, n}, DType::f32);
    ops_.linear(q_, x, w, whole);
    const std::vector<std::int64_t> rows = {0, 1, 8, 9, 100, 300, 301}, outputs = {0, 1, 20, 33, 150};
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      for (std::size_t j = 0; j + 1 < outputs.size(); ++j)
        ops_.linear(q_, x->rows(rows[i], rows[i + 1]), w.outputs(outputs[j], outputs[j + 1]),
                    parts->rows(rows[i], rows[i + 1]).slice(1, outputs[j], outputs[j + 1]));
    expect_same_bits(parts, whole);
  }
}

// Half inputs are widened exactly, so they give what their float32 values give.
TEST_F(LinearTest, HalfInputsAreTheirFloat32Values) {
  const OwnedTensor x = random_tensor({13, 200}, DType::bf16, 1), w = random_tensor({40, 200}, DType::bf16, 2);
  const OwnedTensor wide_x = tensor_of(x->shape, values_of(x)), wide_w = tensor_of(w->shape, values_of(w));
  const OwnedTensor a = poisoned_tensor({13, 40}, DType::f32), b = poisoned_tensor({13, 40}, DType::f32);
  ops_.linear(q_, x, {w, {}, 40}, a);
  ops_.linear(q_, wide_x, {wide_w, {}, 40}, b);
  expect_same_bits(a, b);
}

TEST_F(LinearTest, AcceptsNoRows) {
  const OwnedTensor w = random_tensor({4, 8}, DType::f32, 2), y = poisoned_tensor({1, 4}, DType::f32);
  const OwnedTensor x = random_tensor({1, 8}, DType::f32, 1);
  ops_.linear(q_, x->rows(0, 0), {w, {}, 4}, y->rows(0, 0));
  EXPECT_TRUE(std::isnan(values_of(y)[0]));
}

TEST_F(LinearTest, RejectsWrongShapesAndTypes) {
  const OwnedTensor x = random_tensor({3, 8}, DType::f32, 1), w = random_tensor({4, 8}, DType::f32, 2);
  const OwnedTensor y = poisoned_tensor({3, 4}, DType::f32), narrow = poisoned_tensor({3, 3}, DType::f32);
  const OwnedTensor half = random_tensor({4, 8}, DType::bf16, 2);
  EXPECT_ANY_THROW(ops_.linear(q_, x, {w, {}, 4}, narrow));
  EXPECT_ANY_THROW(ops_.linear(q_, x, {half, {}, 4}, y));
  EXPECT_ANY_THROW(ops_.linear(q_, x, {w, y, 4}, y));
}

}  // namespace
}  // namespace h3::test
