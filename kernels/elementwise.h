// Element-wise kernels over rows: each value depends on its own place alone. Every operation is rounded on its own (no
// contraction), so that results equal the CPU's wherever no transcendental function takes part.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// Rows of a table, row r of the call taking table row index[r].
struct IndexedRows {
  const void* data = nullptr;
  std::int64_t stride = 0;
  Element type = Element::f32;
};

// y = (x * (1 + scale) ->y) + shift ->y, with 1 + scale rounded ->y too.
cudaError_t modulate(const Matrix& x, const IndexedRows& scale, const IndexedRows& shift, const std::int32_t* index,
                     const Matrix& y, cudaStream_t stream);
// x = x + (gate * a ->x) ->x in place.
cudaError_t gated_add(const Matrix& x, const IndexedRows& gate, const std::int32_t* index, const Matrix& a,
                      cudaStream_t stream);
// y = (silu(u[:, :f]) ->y) * u[:, f:] ->y, f = y.columns.
cudaError_t swiglu(const Matrix& u, const Matrix& y, cudaStream_t stream);

enum class Unary : std::uint8_t { silu, gelu_tanh, gelu_erf, sanitize };
// y = f(x); y may be x. `sanitize`: NaN -> 0, infinities -> the largest finite values.
cudaError_t unary(Unary kind, const Matrix& x, const Matrix& y, cudaStream_t stream);
// x = min(max(x, low), high) in place; NaN stays.
cudaError_t clamp(const Matrix& x, float low, float high, cudaStream_t stream);
// x = x + a ->x in place.
cudaError_t add(const Matrix& x, const Matrix& a, cudaStream_t stream);
// x = x + (a * scale) in place, x f32, scale a vector over columns.
cudaError_t scaled_add(const Matrix& x, const Matrix& a, const float* scale, cudaStream_t stream);
// y = x in y's type.
cudaError_t cast(const Matrix& x, const Matrix& y, cudaStream_t stream);

// y = [high | high | low], high = x ->f16, low = (x - high) ->f16; x f32, y f16 with three times the columns.
cudaError_t split_halves(const Matrix& x, const Matrix& y, cudaStream_t stream);

// y = ((x0 + x1) + x2 ...) / count over contiguous f32 arrays.
constexpr int kMaxMeanInputs = 8;
struct MeanInputs {
  const float* data[kMaxMeanInputs] = {};
  int count = 0;
};
cudaError_t mean_of(const MeanInputs& x, std::int64_t n, float* y, cudaStream_t stream);

// x0 = x + one_minus_t * v; x = r * x + (1 - r) * x0; x0 kept in `clean` where given. All f32 and of one shape.
cudaError_t euler_step(const Matrix& x, const Matrix& v, float one_minus_t, float r, const Matrix& clean,
                       cudaStream_t stream);
// x = x + weight * (previous - clean)
cudaError_t multistep_correction(const Matrix& x, const Matrix& clean, const Matrix& previous, float weight,
                                 cudaStream_t stream);

}  // namespace h3::kernels
