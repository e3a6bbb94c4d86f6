// The arithmetic of norms and modulation per row and per value, shared by the fused and the unfused operators so that
// both give the same bits (spec/dit.md 4.7).
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cpu/lanes.h"
#include "compute/cpu/rows.h"
#include "compute/operators.h"

namespace h3::cpu {

// Sum of f(lanes) over n values: four vectors of lanes, added pairwise, then the tree of sum_lanes. f(fill) must be 0.
template <typename F>
inline float lane_sum(const float* x, std::int64_t n, float fill, F f) {
  F8 sum[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int lane = 0; lane < 4; ++lane) sum[lane] += f(load8(x + i + 8 * lane));
  for (int lane = 0; i < n; i += 8, ++lane) sum[lane] += f(n - i >= 8 ? load8(x + i) : load_some(x + i, n - i, fill));
  return sum_lanes((sum[0] + sum[2]) + (sum[1] + sum[3]));
}

// 1 / sqrt(mean(x^2) + eps)
inline float inverse_rms(const float* x, std::int64_t n, float eps) {
  const float sum = lane_sum(x, n, 0.0f, [](F8 v) { return v * v; });
  return 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
}

// (x * (1 + scale)) + shift with its three roundings to T.
template <typename T>
inline float modulated(float x, float scale, float shift) {
  return rounded<T>(rounded<T>(x * rounded<T>(1.0f + scale)) + shift);
}

// A whole row normalised to T's values; weight may be null; y may be x.
template <typename T>
inline void normalize_row(const float* x, std::int64_t n, const float* weight, float eps, NormRounding rounding,
                          float* y) {
  const float inverse = inverse_rms(x, n, eps);
  if (!weight) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(x[i] * inverse);
  } else if (rounding == NormRounding::before_weight) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(rounded<T>(x[i] * inverse) * weight[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>((x[i] * inverse) * weight[i]);
  }
}

}  // namespace h3::cpu
