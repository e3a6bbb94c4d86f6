// A linear layer and the SwiGLU behind it in one kernel for compute capability 9.0, f16: the twice as wide layer never
// goes to memory. Each output is a sum over k in steps of 16 in order, rounded where the two operators round it, so its
// bits depend on its row and the weights alone.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// Does the kernel compute a layer of this depth with this many outputs behind SwiGLU? Whole tiles only.
bool linear_swiglu_sm90_takes(std::int64_t k, std::int64_t outputs);

// y [m, f] = (silu(gate) ->f16) * value ->f16, [gate | value] = x [m, k] . weight [2 f, k]^T + bias [2 f] ->f16. All
// f16, rows aligned by 16 bytes. cudaErrorInvalidValue where this does not hold, cudaErrorNotSupported on devices of
// another capability and in builds without sm_90a.
cudaError_t linear_swiglu_sm90(const Matrix& x, const Matrix& weight, const Vector& bias, const Matrix& y,
                               cudaStream_t stream);

}  // namespace h3::kernels
