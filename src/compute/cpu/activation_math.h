// Activation functions in float32 over rows. SiLU and the tanh form of GELU rest on exp8, so they are the same on every
// machine.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cpu/lanes.h"

namespace h3::cpu {

inline F8 silu8(F8 x) {
  return x / (1.0f + exp8(-x));
}

// 0.5 x (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^(-2 u)).
inline F8 gelu_tanh8(F8 x) {
  return x / (1.0f + exp8((x + 0.044715f * (x * x * x)) * -1.59576912f));
}

inline F8 gelu_erf8(F8 x) {
  F8 e = x * 0.70710678118654752f;
  for (int lane = 0; lane < 8; ++lane) e[lane] = std::erf(e[lane]);
  return 0.5f * x * (1.0f + e);
}

// y[i] = f(x[i]), eight at a time; y may be x.
template <typename F>
inline void map_row(const float* x, std::int64_t n, float* y, F f) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) store8(y + i, f(load8(x + i)));
  if (i < n) store_some(y + i, n - i, f(load_some(x + i, n - i, 0.0f)));
}

}  // namespace h3::cpu
