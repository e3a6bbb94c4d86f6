#include <algorithm>
#include <cmath>

#include "random_tensors.h"

namespace h3::test {
namespace {

using AudioTest = CpuOperatorTest;

const std::vector<float> kFilter = {0.00202896645f,  0.00938946394f,  -0.02554346407f, -0.05765737548f,
                                    0.12857260908f,  0.44320980007f,  0.44320980007f,  0.12857260908f,
                                    -0.05765737548f, -0.02554346407f, 0.00938946394f,  0.00202896645f};

// spec/vae.md 17, formula by formula, in double.
std::vector<double> naive_snake_beta(const std::vector<double>& x, double alpha, double beta,
                                     const std::vector<double>& f) {
  const auto length = static_cast<std::int64_t>(x.size());
  std::vector<double> y(x.size() * 2), o(x.size());
  const auto at = [](const std::vector<double>& v, std::int64_t i) {
    return v[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, static_cast<std::int64_t>(v.size()) - 1))];
  };
  for (std::int64_t j = 0; j < 2 * length; ++j) {
    double sum = 0;
    for (std::int64_t q = 0; q < 6; ++q)
      sum += f[static_cast<std::size_t>((j + 15) % 2 + 2 * q)] * at(x, (j + 5) / 2 - q);
    y[static_cast<std::size_t>(j)] = 2 * sum;
  }
  for (double& v : y) v += 1.0 / (std::exp(beta) + 1e-9) * std::pow(std::sin(std::exp(alpha) * v), 2);
  for (std::int64_t j = 0; j < length; ++j)
    for (std::int64_t q = 0; q < 12; ++q)
      o[static_cast<std::size_t>(j)] += f[static_cast<std::size_t>(q)] * at(y, 2 * j + q - 5);
  return o;
}

TEST_F(AudioTest, SnakeBetaFollowsItsFormulas) {
  for (const std::int64_t length : {1, 2, 5, 8, 100, 2047, 2048, 2049, 5003}) {
    const std::int64_t channels = 3;
    const OwnedTensor x = random_tensor({2, channels, length}, DType::f32, 1, 2.0, 3);
    const OwnedTensor alpha = random_tensor({channels}, DType::f32, 2), beta = random_tensor({channels}, DType::f32, 3);
    const OwnedTensor filter = random_tensor({12}, DType::f32, 4, 0.3);
    const OwnedTensor y = poisoned_tensor({2, channels, length}, DType::f32, 1);
    ops_.snake_beta(q_, x, alpha, beta, filter, y);
    const std::vector<double> a = doubles_of(alpha), b = doubles_of(beta), f = doubles_of(filter);
    for (std::int64_t item = 0; item < 2; ++item)
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto i = static_cast<std::size_t>(c);
        expect_near(y->at(item).at(c), naive_snake_beta(doubles_of(x->at(item).at(c)), a[i], b[i], f), 1e-6, 2e-5);
      }
  }
}

// Up and down again leaves a constant, at both ends too; the snake moves every sample alike.
TEST_F(AudioTest, SnakeBetaMapsConstantsToConstants) {
  const std::int64_t length = 40;
  const OwnedTensor x = tensor_of({1, 1, length}, std::vector<float>(40, 0.75f));
  const OwnedTensor alpha = tensor_of({1}, {0.2f}), beta = tensor_of({1}, {-0.1f}), filter = tensor_of({12}, kFilter);
  const OwnedTensor y = poisoned_tensor({1, 1, length}, DType::f32);
  ops_.snake_beta(q_, x, alpha, beta, filter, y);
  const double expected = 0.75 + std::exp(0.1) * std::pow(std::sin(std::exp(0.2) * 0.75), 2);
  expect_near(y, std::vector<double>(40, expected), 0, 2e-6);
}

TEST_F(AudioTest, ChannelsDoNotDependOnTheirNeighbours) {
  const OwnedTensor x = random_tensor({1, 4, 3000}, DType::f32, 1), alpha = random_tensor({4}, DType::f32, 2);
  const OwnedTensor filter = tensor_of({12}, kFilter);
  const OwnedTensor whole = poisoned_tensor({1, 4, 3000}, DType::f32),
                    parts = poisoned_tensor({1, 4, 3000}, DType::f32);
  ops_.snake_beta(q_, x, alpha, alpha, filter, whole);
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}}) {
    const auto cut = [b = begin, e = end](const Tensor& t, int axis) { return t.slice(axis, b, e); };
    ops_.snake_beta(q_, cut(x, 1), cut(alpha, 0), cut(alpha, 0), filter, cut(parts, 1));
  }
  expect_same_bits(parts, whole);
}

TEST_F(AudioTest, SnakeAddsTheSquaredSine) {
  const OwnedTensor x = random_tensor({2, 3, 1003}, DType::f32, 1, 5.0, 1),
                    y = poisoned_tensor({2, 3, 1003}, DType::f32);
  const OwnedTensor alpha = tensor_of({3}, {0.3f, 2.0f, -1.5f});
  ops_.snake(q_, x, alpha, y);
  std::vector<double> expected = doubles_of(x);
  const std::vector<double> a = doubles_of(alpha);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double frequency = a[i / 1003 % 3];
    expected[i] += std::pow(std::sin(frequency * expected[i]), 2) / (frequency + 1e-9);
  }
  expect_near(y, expected, 4e-7, 3e-6);
}

TEST_F(AudioTest, RejectsOtherFilters) {
  const OwnedTensor x = random_tensor({1, 2, 9}, DType::f32, 1), a = random_tensor({2}, DType::f32, 2);
  const OwnedTensor y = poisoned_tensor({1, 2, 9}, DType::f32);
  EXPECT_ANY_THROW(ops_.snake_beta(q_, x, a, a, random_tensor({11}, DType::f32, 3), y));
  EXPECT_ANY_THROW(ops_.snake(q_, x, random_tensor({3}, DType::f32, 3), y));
}

}  // namespace
}  // namespace h3::test
