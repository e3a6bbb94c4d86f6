// Convolutions as matrix products: y[o, p] = sum over taps t of weight[o, t] * source[tap[t] + position[p]] + bias[o].
// A tap and a position are offsets into the padded input, so 3-D, 1-D, strided, dilated and transposed convolutions
// differ in these two tables alone. The order of each sum is that of the taps, in blocks of kBlockK (cpu/gemm.h).
#pragma once

#include <cstdint>
#include <span>

namespace h3::cpu {

struct GatheredProduct {
  const float* weight;  // [outputs, taps], rows `weight_stride` apart
  std::int64_t weight_stride;
  std::int64_t outputs;
  const float* bias;  // [outputs] or null
  const float* source;
  std::span<const std::int64_t> taps;
  std::span<const std::int64_t> positions;
  float* y;  // value (o, p) at y[o * y_stride + p * y_step]
  std::int64_t y_stride, y_step;
};

// Computes positions [begin, end); callers share these out between threads.
constexpr std::int64_t kPositions = 64;
void gathered_product(const GatheredProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace h3::cpu
