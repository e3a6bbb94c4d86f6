// Kernels of the audio decoder and encoder outside their convolutions, all f32 (spec/vae.md 16, 17).
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// [batch, channels, length] with contiguous samples.
struct Signal {
  float* data = nullptr;
  std::int64_t batch = 0, channels = 0, length = 0;
  std::int64_t batch_stride = 0, channel_stride = 0;
};

constexpr int kSnakeTaps = 12;

// The anti-aliased SnakeBeta: up x2, snake, down x2 in one pass. alpha and beta [channels] as logarithms; y is not x.
cudaError_t snake_beta(const Signal& x, const float* alpha, const float* beta, const float* filter, const Signal& y,
                       cudaStream_t stream);
// y = x + sin^2(alpha x) / (alpha + 1e-9); y may be x.
cudaError_t snake(const Signal& x, const float* alpha, const Signal& y, cudaStream_t stream);

}  // namespace h3::kernels
