// Eight float32 lanes as a GCC vector: one type on every machine, lowered to whatever the target has, so that results
// do not depend on -march. Sums keep one lane order and one final tree; exp and sin are polynomials of our own, the
// same bits everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace h3::cpu {

using F8 = float __attribute__((vector_size(32)));
using I8 = std::int32_t __attribute__((vector_size(32)));

inline F8 load8(const float* p) {
  F8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store8(float* p, F8 v) {
  std::memcpy(p, &v, sizeof v);
}
inline F8 splat(float x) {
  return F8{x, x, x, x, x, x, x, x};
}
inline I8 bits_of(F8 v) {
  return reinterpret_cast<I8>(v);
}
inline F8 floats_of(I8 v) {
  return reinterpret_cast<F8>(v);
}

// The first `n` (1..8) values at p; the other lanes hold `fill`.
inline F8 load_some(const float* p, std::int64_t n, float fill) {
  F8 v = splat(fill);
  std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(float));
  return v;
}
inline void store_some(float* p, std::int64_t n, F8 v) {
  std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(float));
}

inline bool any_lane(I8 mask) {
  std::int32_t any = 0;
  for (int lane = 0; lane < 8; ++lane) any |= mask[lane];
  return any != 0;
}

// The tree every lane sum ends with.
inline float sum_lanes(F8 v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// e^x within about one unit in the last place; results below the smallest normal number are 0; NaN stays NaN.
inline F8 exp8(F8 x) {
  const F8 magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, half to even
  const F8 clamped_low = x < -104.0f ? splat(-104.0f) : x;
  const F8 clamped = clamped_low > 89.0f ? splat(89.0f) : clamped_low;
  const F8 shifted = clamped * 1.44269504088896341f + magic;
  const F8 n = shifted - magic;
  const F8 r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  F8 p = r * 1.97902977e-4f + 1.39447034e-3f;
  p = p * r + 8.33349768e-3f;
  p = p * r + 4.16662954e-2f;
  p = p * r + 1.66666657e-1f;
  p = p * r + 0.5f;
  const F8 y = (p * (r * r) + r) + 1.0f;
  // 2^n in two factors, since 2^128 alone would be infinite.
  const I8 exponent = bits_of(shifted) - bits_of(magic);
  const I8 half = exponent >> 1;
  const F8 scaled = (y * floats_of((half + 127) << 23)) * floats_of((exponent - half + 127) << 23);
  return x < -87.3365448f ? splat(0.0f) : scaled;
}

// sin(x)^2 within 2.5e-7, and within a few units in the last place near multiples of pi. From |x| = 25000 on the C
// library's sine is used.
inline F8 sin_squared8(F8 x) {
  const F8 magic = splat(12582912.0f);
  const F8 shifted = x * 0.318309886f + magic;
  const F8 n = shifted - magic;
  // pi in three parts; the first two products are exact while |n| < 2^13. The sign (-1)^n is lost in the square.
  const F8 r = ((x - n * 3.140625f) - n * 0.000967502594f) - n * 1.50995803e-07f;
  const F8 s = r * r;
  F8 p = s * 2.60563115e-6f - 1.98095397e-4f;
  p = p * s + 8.33306555e-3f;
  p = p * s - 1.66666597e-1f;
  F8 y = p * s * r + r;
  const I8 far = ~((x < 25000.0f) & (x > -25000.0f));
  for (int lane = 0; lane < 8 && any_lane(far); ++lane)
    if (far[lane]) y[lane] = std::sin(x[lane]);
  return y * y;
}

}  // namespace h3::cpu
