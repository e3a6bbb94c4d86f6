#include <cmath>

#include "compute/cpu/activation_math.h"
#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/norm_math.h"

namespace h3 {

using namespace cpu;

void CpuOperators::rms_norm(Queue&, const Tensor& x, const Tensor& weight, float eps, NormRounding rounding,
                            const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), h = x.size(1);
  check_matrix(x, m, h);
  check_matrix(y, m, h);
  if (weight) check_vector(weight, h);
  const float* w = read_vector(weight, 4);
  with_float_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (m * h > kParallelWork)
    for (std::int64_t r = 0; r < m; ++r) {
      float* out = scratch(1, h);
      normalize_row<T>(read_row(x, r, scratch(0, h)), h, w, eps, rounding, out);
      write_floats(y, r * y.stride(0), h, out);
    }
  });
}

void CpuOperators::layer_norm(Queue&, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                              const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), h = x.size(1);
  check_matrix(x, m, h);
  check_matrix(y, m, h);
  if (weight) check_vector(weight, h);
  if (bias) check_vector(bias, h);
  const float* w = read_vector(weight, 4);
  const float* b = read_vector(bias, 5);
#pragma omp parallel for schedule(static) if (m * h > kParallelWork)
  for (std::int64_t r = 0; r < m; ++r) {
    const float* in = read_row(x, r, scratch(0, h));
    float* out = scratch(1, h);
    const float mean = lane_sum(in, h, 0.0f, [](F8 v) { return v; }) / static_cast<float>(h);
    const float variance =
        lane_sum(in, h, mean, [mean](F8 v) { return (v - mean) * (v - mean); }) / static_cast<float>(h);
    const float inverse = 1.0f / std::sqrt(variance + eps);
    for (std::int64_t i = 0; i < h; ++i) out[i] = (in[i] - mean) * inverse;
    if (w)
      for (std::int64_t i = 0; i < h; ++i) out[i] *= w[i];
    if (b)
      for (std::int64_t i = 0; i < h; ++i) out[i] += b[i];
    write_floats(y, r * y.stride(0), h, out);
  }
}

namespace {

// Rows of w values of one frame and one group: [channels, h] rows at x.
struct Planes {
  const Tensor& x;
  std::int64_t first, channels, frame;
  const float* row(std::int64_t c, std::int64_t y) const {
    return x.as<float>() + (first + c) * x.stride(0) + frame * x.stride(1) + y * x.stride(2);
  }
  // Sum of f over all values: lanes within a row of pixels, rows in order in double.
  template <typename F>
  double sum(float fill, F f) const {
    double total = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = 0; y < x.size(2); ++y)
        total += static_cast<double>(lane_sum(row(c, y), x.size(3), fill, f));
    return total;
  }
};

}  // namespace

void CpuOperators::group_norm(Queue&, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t groups,
                              float eps, bool silu, const Tensor& y) {
  CHECK_EQ(x.rank(), 4);
  H3_CHECK(x.shape == y.shape, x.shape.text() + " against " + y.shape.text());
  H3_CHECK(x.dtype == DType::f32 && y.dtype == DType::f32, "group norm is float32");
  check_rows(x);
  check_rows(y);
  const std::int64_t channels = x.size(0), frames = x.size(1), height = x.size(2), width = x.size(3);
  CHECK_EQ(channels % groups, 0);
  check_vector(weight, channels);
  check_vector(bias, channels);
  const float* w = read_vector(weight, 4);
  const float* b = read_vector(bias, 5);
  const std::int64_t share = channels / groups;
  const double count = static_cast<double>(share * height * width);
#pragma omp parallel for schedule(static) collapse(2)
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t g = 0; g < groups; ++g) {
      const Planes planes{x, g * share, share, f};
      const auto mean = static_cast<float>(planes.sum(0.0f, [](F8 v) { return v; }) / count);
      const auto variance =
          static_cast<float>(planes.sum(mean, [mean](F8 v) { return (v - mean) * (v - mean); }) / count);
      const float inverse = 1.0f / std::sqrt(variance + eps);
      for (std::int64_t c = 0; c < share; ++c)
        for (std::int64_t r = 0; r < height; ++r) {
          const float* in = planes.row(c, r);
          const std::int64_t channel = g * share + c;
          float* out = y.as<float>() + channel * y.stride(0) + f * y.stride(1) + r * y.stride(2);
          for (std::int64_t i = 0; i < width; ++i) out[i] = (in[i] - mean) * inverse * w[channel] + b[channel];
          if (silu) map_row(out, width, out, silu8);
        }
    }
}

}  // namespace h3
