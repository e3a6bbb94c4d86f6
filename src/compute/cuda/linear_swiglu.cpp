// A linear layer with SwiGLU behind it: one kernel of our own where there is one for the card, the type and the shape
// of the layer, never by the number of rows (spec/dit.md 7.4); the two operators elsewhere.
#include "kernels/linear_swiglu_sm90.h"

#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"

namespace h3 {

using namespace cuda;

void CudaOperators::linear_swiglu(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& wide,
                                  const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  CHECK_EQ(y.rank(), 2);
  const std::int64_t m = x.size(0), k = x.size(1), f = y.size(1);
  const kernels::Matrix from = matrix(x, m, k), weight = matrix(w.weight, 2 * f, k), to = matrix(y, m, f);
  for (const Tensor* t : {&w.weight, &w.bias, &y}) check_dtype(*t, x.dtype);
  CHECK_EQ(w.full_outputs, 2 * f);
  if (capability_ != 90 || x.dtype != DType::f16 || !kernels::linear_swiglu_sm90_takes(k, f)) {
    linear(q, x, w, wide);
    swiglu(q, wide, y);
    return;
  }
  const NamedRange range("linear_swiglu");
  H3_CUDA(kernels::linear_swiglu_sm90(from, weight, vector(w.bias, 2 * f), to, cuda_queue(q).stream()));
}

}  // namespace h3
