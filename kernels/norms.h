// Norms over rows, alone or fused with the modulation that follows them. A row's sum runs in a tree fixed by the row's
// width: the same bits for any number of rows, element type or alignment, fused or not.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// Row r of a call takes row index[r] of two tables of the same width. Null index: no modulation.
struct Modulation {
  const void* scale = nullptr;
  const void* shift = nullptr;
  std::int64_t scale_stride = 0, shift_stride = 0;
  Element type = Element::f32;
  const std::int32_t* index = nullptr;
};

struct RmsNorm {
  Vector weight;  // null: none
  float eps = 0;
  bool round_before_weight = false;
  Modulation modulation;
};

// y = x * rsqrt(mean(x^2) + eps) * weight, rounded to y's type, then modulated where asked.
cudaError_t rms_norm(const Matrix& x, const RmsNorm& norm, const Matrix& y, cudaStream_t stream);

// x = x + (a * scale) in place, x f32, scale a vector over columns; then y = rms_norm of x: the bits of the two apart.
cudaError_t scaled_add_norm(const Matrix& x, const Matrix& a, const float* scale, const Vector& weight, float eps,
                            const Matrix& y, cudaStream_t stream);

// y = (x - mean) * rsqrt(variance + eps) * weight + bias; weight and bias may be null.
cudaError_t layer_norm(const Matrix& x, const Vector& weight, const Vector& bias, float eps, const Matrix& y,
                       cudaStream_t stream);

// Planes of a [channels, frames, height, width] f32 tensor with contiguous rows of pixels.
struct Planes {
  float* data = nullptr;
  std::int64_t channels = 0, frames = 0, height = 0, width = 0;
  std::int64_t channel_stride = 0, frame_stride = 0, row_stride = 0;
};

// Group norm of every frame on its own, then SiLU where asked.
cudaError_t group_norm(const Planes& x, const float* weight, const float* bias, std::int64_t groups, float eps,
                       bool silu, const Planes& y, cudaStream_t stream);

// RMS norm over d, then rotation of the pairs (j, j + pairs), in place.
struct HeadNormRope {
  Vector weight;
  float eps = 0;
  bool norm = true;
  bool round_before_weight = false;
  const void* cos = nullptr;  // [rows, pairs]; null: no rotation
  const void* sin = nullptr;
  std::int64_t cos_stride = 0, sin_stride = 0, pairs = 0;
  Element table_type = Element::f32;
  bool round_products = false;
};
constexpr std::int64_t kMaxHeadSize = 256;
cudaError_t head_norm_rope(const Heads& x, const HeadNormRope& spec, cudaStream_t stream);

}  // namespace h3::kernels
