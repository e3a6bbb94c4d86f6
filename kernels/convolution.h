// Convolutions in float32, as matrix products whose second operand is gathered from the input (tile_product.cuh): each
// output is one chain of fused multiply-adds over (input channel, taps) in ascending order.
#pragma once

#include "kernels/audio.h"
#include "kernels/video.h"

namespace h3::kernels {

// x [ci, t, h, w] padded in h and w already; kt - 1 zero frames stand before x; weight [co, ci, kt, kh, kw] contiguous;
// bias may be null; y [co, t', h', w'].
struct Conv3d {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t kt = 1, kh = 1, kw = 1;
  std::int64_t stride_t = 1, stride_h = 1, stride_w = 1;
};
cudaError_t conv3d_causal(const View4& x, const Conv3d& conv, const View4& y, cudaStream_t stream);

// weight [co, ci, taps] contiguous, or [ci, co, taps] for the transposed one; bias may be null.
struct Conv1d {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t taps = 1, stride = 1, dilation = 1, padding = 0;
};
cudaError_t conv1d(const Signal& x, const Conv1d& conv, const Signal& y, cudaStream_t stream);
cudaError_t conv1d_transposed(const Signal& x, const Conv1d& conv, const Signal& y, cudaStream_t stream);

}  // namespace h3::kernels
