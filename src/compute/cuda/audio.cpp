#include "kernels/audio.h"

#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/convolution.h"

namespace h3 {

using namespace cuda;

namespace {

// The convolution's parameters, `outputs` and `inputs` being the weight's first two axes in this order.
kernels::Conv1d conv_of(const Tensor& weight, const Tensor& bias, const Conv1dShape& shape, std::int64_t first,
                        std::int64_t second, std::int64_t outputs) {
  CHECK_EQ(weight.rank(), 3);
  CHECK_EQ(weight.size(0), first);
  CHECK_EQ(weight.size(1), second);
  check_dtype(weight, DType::f32);
  check_memory(weight);
  H3_CHECK(weight.contiguous(), "convolution weights are contiguous");
  return {weight.as<const float>(), floats_or_none(bias, outputs),
          weight.size(2),           shape.stride,
          shape.dilation,           shape.padding};
}

}  // namespace

void CudaOperators::conv1d(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Conv1dShape& shape, const Tensor& y) {
  const NamedRange range("conv1d");
  const kernels::Signal from = signal(x), to = signal(y);
  const kernels::Conv1d conv = conv_of(weight, bias, shape, to.channels, from.channels, to.channels);
  CHECK_EQ(from.batch, to.batch);
  CHECK_EQ(to.length, (from.length + 2 * conv.padding - conv.dilation * (conv.taps - 1) - 1) / conv.stride + 1);
  H3_CUDA(kernels::conv1d(from, conv, to, cuda_queue(q).stream()));
}

void CudaOperators::conv1d_transposed(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const Conv1dShape& shape, const Tensor& y) {
  const NamedRange range("conv1d_transposed");
  const kernels::Signal from = signal(x), to = signal(y);
  const kernels::Conv1d conv = conv_of(weight, bias, shape, from.channels, to.channels, to.channels);
  CHECK_EQ(from.batch, to.batch);
  CHECK_EQ(conv.dilation, 1);
  CHECK_EQ(to.length, (from.length - 1) * conv.stride - 2 * conv.padding + conv.taps);
  H3_CUDA(kernels::conv1d_transposed(from, conv, to, cuda_queue(q).stream()));
}

void CudaOperators::snake_beta(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& beta, const Tensor& filter,
                               const Tensor& y) {
  const NamedRange range("snake_beta");
  check_same_shape(x, y);
  const kernels::Signal from = signal(x), to = signal(y);
  H3_CUDA(kernels::snake_beta(from, floats(alpha, from.channels), floats(beta, from.channels),
                              floats(filter, kernels::kSnakeTaps), to, cuda_queue(q).stream()));
}

void CudaOperators::snake(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& y) {
  const NamedRange range("snake");
  check_same_shape(x, y);
  const kernels::Signal from = signal(x), to = signal(y);
  H3_CUDA(kernels::snake(from, floats(alpha, from.channels), to, cuda_queue(q).stream()));
}

}  // namespace h3
