// A linear layer on the plain float32 units, for shapes and types that cuBLASLt does not take. Slow and simple; each
// output is one chain of fused multiply-adds over k.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// y [m, n] = x [m, k] . weight [n, k]^T + bias; the bias is added before the one rounding to y's type.
cudaError_t plain_linear(const Matrix& x, const Matrix& weight, const Vector& bias, const Matrix& y,
                         cudaStream_t stream);

}  // namespace h3::kernels
