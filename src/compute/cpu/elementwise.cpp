#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/cpu/activation_math.h"
#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

float largest_finite(DType dtype) {
  if (dtype == DType::bf16) return 0x1.fep127f;
  if (dtype == DType::f16) return 65504.0f;
  return std::numeric_limits<float>::max();
}

void check_all_f32(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) CHECK_EQ(name_of(t->dtype), name_of(DType::f32));
}

// y = f(x), eight values at a time, rounded to y's type; y may be x.
template <typename F>
void map(const Tensor& x, const Tensor& y, F f) {
  for_each_piece<2>({x, y}, [&](const auto& at, std::int64_t n) {
    float* out = scratch(1, n);
    map_row(read_floats(x, at[0], n, scratch(0, n)), n, out, f);
    write_floats(y, at[1], n, out);
  });
}

}  // namespace

void CpuOperators::swiglu(Queue&, const Tensor& u, const Tensor& y) {
  CHECK_EQ(y.rank(), 2);
  const std::int64_t m = y.size(0), f = y.size(1);
  check_matrix(u, m, 2 * f);
  check_matrix(y, m, f);
  with_float_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (m * f > kParallelWork)
    for (std::int64_t r = 0; r < m; ++r) {
      const float* gate = read_row(u, r, scratch(0, 2 * f));
      float* out = scratch(1, f);
      map_row(gate, f, out, silu8);
      for (std::int64_t i = 0; i < f; ++i) out[i] = rounded<T>(out[i]) * gate[f + i];
      write_floats(y, r * y.stride(0), f, out);
    }
  });
}

void CpuOperators::activate(Queue&, Activation kind, const Tensor& x, const Tensor& y) {
  switch (kind) {
    case Activation::silu:
      return map(x, y, silu8);
    case Activation::gelu_tanh:
      return map(x, y, gelu_tanh8);
    case Activation::gelu_erf:
      return map(x, y, gelu_erf8);
  }
}

void CpuOperators::add(Queue&, const Tensor& x, const Tensor& a) {
  for_each_piece<2>({x, a}, [&](const auto& at, std::int64_t n) {
    const float* in = read_floats(x, at[0], n, scratch(0, n));
    const float* other = read_floats(a, at[1], n, scratch(1, n));
    float* out = scratch(2, n);
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] + other[i];
    write_floats(x, at[0], n, out);
  });
}

void CpuOperators::scaled_add(Queue&, const Tensor& x, const Tensor& a, const Tensor& scale) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), n = x.size(1);
  check_all_f32({&x, &scale});
  check_matrix(x, m, n);
  check_matrix(a, m, n);
  check_vector(scale, n);
  const float* s = scale.as<float>();
#pragma omp parallel for schedule(static) if (m * n > kParallelWork)
  for (std::int64_t r = 0; r < m; ++r) {
    const float* update = read_row(a, r, scratch(0, n));
    float* row = x.as<float>() + r * x.stride(0);
    for (std::int64_t i = 0; i < n; ++i) row[i] = row[i] + update[i] * s[i];
  }
}

void CpuOperators::scaled_add_norm(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale,
                                   const Tensor& weight, float eps, const Tensor& y) {
  scaled_add(q, x, a, scale);
  rms_norm(q, x, weight, eps, NormRounding::once, y);
}

void CpuOperators::split_halves(Queue&, const Tensor& x, const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), n = x.size(1);
  check_all_f32({&x});
  CHECK_EQ(name_of(y.dtype), name_of(DType::f16));
  check_matrix(x, m, n);
  check_matrix(y, m, 3 * n);
#pragma omp parallel for schedule(static) if (m * n > kParallelWork)
  for (std::int64_t r = 0; r < m; ++r) {
    const float* in = x.as<float>() + r * x.stride(0);
    float* out = scratch(0, 3 * n);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = out[n + i] = rounded<f16_t>(in[i]);
      out[2 * n + i] = in[i] - out[i];
    }
    write_floats(y, r * y.stride(0), 3 * n, out);
  }
}

void CpuOperators::sanitize(Queue&, const Tensor& x) {
  const F8 limit = splat(largest_finite(x.dtype));
  map(x, x, [limit](F8 v) {
    const F8 bounded = v > limit ? limit : v < -limit ? -limit : v;
    return v == v ? bounded : splat(0.0f);
  });
}

// NaN stays NaN.
void CpuOperators::clamp(Queue&, const Tensor& x, float low, float high) {
  map(x, x, [low = splat(low), high = splat(high)](F8 v) { return v < low ? low : v > high ? high : v; });
}

void CpuOperators::mean_of(Queue&, std::span<const Tensor> x, const Tensor& y) {
  CHECK_GE(x.size(), 1u);
  for (const Tensor& t : x) {
    H3_CHECK(t.shape == y.shape, t.shape.text() + " against " + y.shape.text());
    check_all_f32({&t, &y});
    check_rows(t);
  }
  check_rows(y);
  const std::int64_t rows = row_count(y), n = y.size(-1);
  const auto count = static_cast<float>(x.size());
#pragma omp parallel for schedule(static) if (rows * n > kParallelWork)
  for (std::int64_t r = 0; r < rows; ++r) {
    float* sum = scratch(0, n);
    std::copy_n(x[0].as<float>() + row_offset(x[0], r), n, sum);
    for (std::size_t t = 1; t < x.size(); ++t) {
      const float* next = x[t].as<float>() + row_offset(x[t], r);
      for (std::int64_t i = 0; i < n; ++i) sum[i] += next[i];
    }
    float* out = y.as<float>() + row_offset(y, r);
    for (std::int64_t i = 0; i < n; ++i) out[i] = sum[i] / count;
  }
}

void CpuOperators::euler_step(Queue&, const Tensor& x, const Tensor& v, float one_minus_t, float r,
                              const Tensor& clean) {
  check_all_f32({&x, &v, &clean});
  const float rest = 1.0f - r;
  for_each_piece<3>({x, v, clean ? clean : x}, [&](const auto& at, std::int64_t n) {
    float* sample = x.as<float>() + at[0];
    const float* velocity = v.as<float>() + at[1];
    float* x0 = clean ? clean.as<float>() + at[2] : scratch(0, n);
    for (std::int64_t i = 0; i < n; ++i) x0[i] = sample[i] + one_minus_t * velocity[i];
    for (std::int64_t i = 0; i < n; ++i) sample[i] = r * sample[i] + rest * x0[i];
  });
}

void CpuOperators::multistep_correction(Queue&, const Tensor& x, const Tensor& clean, const Tensor& previous,
                                        float weight) {
  check_all_f32({&x, &clean, &previous});
  for_each_piece<3>({x, clean, previous}, [&](const auto& at, std::int64_t n) {
    float* sample = x.as<float>() + at[0];
    const float* now = clean.as<float>() + at[1];
    const float* before = previous.as<float>() + at[2];
    for (std::int64_t i = 0; i < n; ++i) sample[i] = sample[i] + weight * (before[i] - now[i]);
  });
}

}  // namespace h3
