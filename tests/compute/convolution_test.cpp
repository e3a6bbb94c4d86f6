#include <cmath>

#include "random_tensors.h"

namespace h3::test {
namespace {

using ConvolutionTest = CpuOperatorTest;

std::vector<double> naive_conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dShape& shape,
                                 const Tensor& y) {
  const Tensor& w = weight;
  std::vector<double> out;
  for (std::int64_t o = 0; o < y.size(0); ++o)
    for (std::int64_t t = 0; t < y.size(1); ++t)
      for (std::int64_t r = 0; r < y.size(2); ++r)
        for (std::int64_t c = 0; c < y.size(3); ++c) {
          double sum = bias ? static_cast<double>(bias.as<float>()[o]) : 0.0;
          for (std::int64_t i = 0; i < w.size(1); ++i)
            for (std::int64_t kt = 0; kt < w.size(2); ++kt)
              for (std::int64_t kr = 0; kr < w.size(3); ++kr)
                for (std::int64_t kc = 0; kc < w.size(4); ++kc) {
                  const std::int64_t frame = t * shape.stride_t + kt - (w.size(2) - 1);
                  if (frame < 0) continue;
                  const float a = x.as<float>()[i * x.stride(0) + frame * x.stride(1) +
                                                (r * shape.stride_h + kr) * x.stride(2) + c * shape.stride_w + kc];
                  const float b =
                      w.as<float>()[(((o * w.size(1) + i) * w.size(2) + kt) * w.size(3) + kr) * w.size(4) + kc];
                  sum += static_cast<double>(a) * static_cast<double>(b);
                }
          out.push_back(sum);
        }
  return out;
}

struct Conv3dCase {
  std::int64_t in, out, t, h, w, k;
  Conv3dShape shape;
};

TEST_F(ConvolutionTest, Conv3dAgreesWithDoublePrecision) {
  const std::vector<Conv3dCase> cases = {
      {3, 5, 4, 7, 21, 3, {1, 1, 1}}, {6, 9, 5, 9, 9, 3, {1, 2, 2}},     {6, 7, 5, 8, 11, 3, {2, 2, 2}},
      {7, 4, 3, 3, 37, 1, {1, 1, 1}}, {20, 13, 1, 10, 12, 3, {1, 1, 1}}, {2, 17, 2, 3, 3, 3, {1, 1, 1}},
  };
  for (const Conv3dCase& c : cases) {
    const OwnedTensor x = random_tensor({c.in, c.t, c.h, c.w}, DType::f32, 1, 1.0, 3);
    const OwnedTensor weight = random_tensor({c.out, c.in, c.k, c.k, c.k}, DType::f32, 2, 0.2);
    const OwnedTensor bias = random_tensor({c.out}, DType::f32, 3);
    const OwnedTensor y = poisoned_tensor({c.out, (c.t - 1) / c.shape.stride_t + 1, (c.h - c.k) / c.shape.stride_h + 1,
                                           (c.w - c.k) / c.shape.stride_w + 1},
                                          DType::f32);
    ops_.conv3d_causal(q_, x, weight, bias, c.shape, y);
    expect_near(y, naive_conv3d(x, weight, bias, c.shape, y), 1e-6, 2e-5);
    ops_.conv3d_causal(q_, x, weight, {}, c.shape, y);
    expect_near(y, naive_conv3d(x, weight, {}, c.shape, y), 1e-6, 2e-5);
  }
}

// Frames before the first are zero: a later frame changes nothing before it, and frames may be cut off the end.
TEST_F(ConvolutionTest, Conv3dIsCausal) {
  const OwnedTensor x = random_tensor({3, 4, 6, 20}, DType::f32, 1),
                    weight = random_tensor({4, 3, 3, 3, 3}, DType::f32, 2);
  const OwnedTensor whole = poisoned_tensor({4, 4, 4, 18}, DType::f32),
                    first = poisoned_tensor({4, 1, 4, 18}, DType::f32);
  ops_.conv3d_causal(q_, x, weight, {}, {}, whole);
  ops_.conv3d_causal(q_, x->slice(1, 0, 1), weight, {}, {}, first);
  expect_same_bits(first, whole->slice(1, 0, 1));
}

TEST_F(ConvolutionTest, Conv3dOutputsDoNotDependOnTheSplit) {
  const OwnedTensor x = random_tensor({5, 3, 6, 40}, DType::f32, 1),
                    weight = random_tensor({11, 5, 3, 3, 3}, DType::f32, 2);
  const OwnedTensor whole = poisoned_tensor({11, 3, 4, 38}, DType::f32),
                    parts = poisoned_tensor({11, 3, 4, 38}, DType::f32);
  ops_.conv3d_causal(q_, x, weight, {}, {}, whole);
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 11}})
    ops_.conv3d_causal(q_, x, weight->rows(begin, end), {}, {}, parts->rows(begin, end));
  expect_same_bits(parts, whole);
}

std::vector<double> naive_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dShape& shape,
                                 const Tensor& y) {
  std::vector<double> out;
  for (std::int64_t b = 0; b < y.size(0); ++b)
    for (std::int64_t o = 0; o < y.size(1); ++o)
      for (std::int64_t t = 0; t < y.size(2); ++t) {
        double sum = bias ? static_cast<double>(bias.as<float>()[o]) : 0.0;
        for (std::int64_t i = 0; i < x.size(1); ++i)
          for (std::int64_t k = 0; k < w.size(2); ++k) {
            const std::int64_t s = t * shape.stride + k * shape.dilation - shape.padding;
            if (s < 0 || s >= x.size(2)) continue;
            sum += static_cast<double>(x.as<float>()[b * x.stride(0) + i * x.stride(1) + s]) *
                   static_cast<double>(w.as<float>()[(o * x.size(1) + i) * w.size(2) + k]);
          }
        out.push_back(sum);
      }
  return out;
}

TEST_F(ConvolutionTest, Conv1dAgreesWithDoublePrecision) {
  struct Case {
    std::int64_t in, out, length, k;
    Conv1dShape shape;
  };
  const std::vector<Case> cases = {{5, 7, 100, 7, {1, 1, 3}}, {20, 3, 77, 11, {1, 5, 25}}, {4, 9, 41, 8, {4, 1, 2}},
                                   {1, 6, 30, 7, {1, 1, 3}},  {8, 1, 130, 7, {1, 1, 3}},   {3, 2, 1, 1, {1, 1, 0}},
                                   {2, 2, 3, 7, {1, 9, 27}},  {6, 13, 50, 10, {5, 1, 3}}};
  for (const Case& c : cases) {
    const std::int64_t results =
        (c.length + 2 * c.shape.padding - (c.k - 1) * c.shape.dilation - 1) / c.shape.stride + 1;
    const OwnedTensor x = random_tensor({2, c.in, c.length}, DType::f32, 1, 1.0, 2);
    const OwnedTensor weight = random_tensor({c.out, c.in, c.k}, DType::f32, 2, 0.3);
    const OwnedTensor bias = random_tensor({c.out}, DType::f32, 3),
                      y = poisoned_tensor({2, c.out, results}, DType::f32, 1);
    ops_.conv1d(q_, x, weight, bias, c.shape, y);
    expect_near(y, naive_conv1d(x, weight, bias, c.shape, y), 1e-6, 2e-5);
  }
}

TEST_F(ConvolutionTest, TransposedConvolutionAgreesWithDoublePrecision) {
  struct Case {
    std::int64_t in, out, length, k, stride, padding;
  };
  const std::vector<Case> cases = {{5, 3, 40, 9, 5, 2}, {6, 7, 33, 8, 4, 2}, {4, 2, 50, 16, 8, 4},
                                   {3, 2, 1, 4, 2, 1},  {2, 3, 7, 3, 5, 0},  {2, 1, 9, 4, 1, 1}};
  for (const Case& c : cases) {
    const std::int64_t results = (c.length - 1) * c.stride - 2 * c.padding + c.k;
    const OwnedTensor x = random_tensor({2, c.in, c.length}, DType::f32, 1, 1.0, 1);
    const OwnedTensor weight = random_tensor({c.in, c.out, c.k}, DType::f32, 2);
    const OwnedTensor bias = random_tensor({c.out}, DType::f32, 3),
                      y = poisoned_tensor({2, c.out, results}, DType::f32, 2);
    ops_.conv1d_transposed(q_, x, weight, bias, {c.stride, 1, c.padding}, y);
    std::vector<double> expected(static_cast<std::size_t>(2 * c.out * results));
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t o = 0; o < c.out; ++o) {
        double* row = expected.data() + (b * c.out + o) * results;
        std::fill_n(row, results, static_cast<double>(bias->as<float>()[o]));
        for (std::int64_t i = 0; i < c.in; ++i)
          for (std::int64_t s = 0; s < c.length; ++s)
            for (std::int64_t k = 0; k < c.k; ++k) {
              const std::int64_t t = s * c.stride - c.padding + k;
              if (t < 0 || t >= results) continue;
              row[t] += static_cast<double>(x->as<float>()[b * x->stride(0) + i * x->stride(1) + s]) *
                        static_cast<double>(weight->as<float>()[(i * c.out + o) * c.k + k]);
            }
      }
    expect_near(y, expected, 1e-6, 1e-5);
  }
}

TEST_F(ConvolutionTest, RejectsWrongShapes) {
  const OwnedTensor x = random_tensor({1, 2, 20}, DType::f32, 1), w = random_tensor({3, 2, 5}, DType::f32, 2);
  const OwnedTensor y = poisoned_tensor({1, 3, 20}, DType::f32), v = random_tensor({3, 4, 5}, DType::f32, 2);
  EXPECT_ANY_THROW(ops_.conv1d(q_, x, w, {}, {1, 1, 0}, y));
  EXPECT_ANY_THROW(ops_.conv1d(q_, x, v, {}, {1, 1, 2}, y));
  EXPECT_ANY_THROW(ops_.conv1d_transposed(q_, x, w, {}, {2, 1, 0}, y));
}

}  // namespace
}  // namespace h3::test
