#include "kernels/elementwise.h"

#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"

namespace h3 {

using namespace cuda;

namespace {

void apply(Queue& q, kernels::Unary kind, const Tensor& x, const Tensor& y) {
  check_dtype(y, x.dtype);
  for_each_matrix(std::array{x, y},
                  [&](const auto& m) { H3_CUDA(kernels::unary(kind, m[0], m[1], cuda_queue(q).stream())); });
}

void check_f32(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) check_dtype(*t, DType::f32);
}

}  // namespace

void CudaOperators::swiglu(Queue& q, const Tensor& u, const Tensor& y) {
  const NamedRange range("swiglu");
  const kernels::Matrix to = matrix(y), from = matrix(u, to.rows, 2 * to.columns);
  check_dtype(u, y.dtype);
  H3_CUDA(kernels::swiglu(from, to, cuda_queue(q).stream()));
}

void CudaOperators::activate(Queue& q, Activation kind, const Tensor& x, const Tensor& y) {
  const NamedRange range("activate");
  switch (kind) {
    case Activation::silu:
      return apply(q, kernels::Unary::silu, x, y);
    case Activation::gelu_tanh:
      return apply(q, kernels::Unary::gelu_tanh, x, y);
    case Activation::gelu_erf:
      return apply(q, kernels::Unary::gelu_erf, x, y);
  }
}

void CudaOperators::sanitize(Queue& q, const Tensor& x) {
  const NamedRange range("sanitize");
  apply(q, kernels::Unary::sanitize, x, x);
}

void CudaOperators::clamp(Queue& q, const Tensor& x, float low, float high) {
  const NamedRange range("clamp");
  for_each_matrix(std::array{x},
                  [&](const auto& m) { H3_CUDA(kernels::clamp(m[0], low, high, cuda_queue(q).stream())); });
}

void CudaOperators::add(Queue& q, const Tensor& x, const Tensor& a) {
  const NamedRange range("add");
  check_dtype(a, x.dtype);
  for_each_matrix(std::array{x, a}, [&](const auto& m) { H3_CUDA(kernels::add(m[0], m[1], cuda_queue(q).stream())); });
}

void CudaOperators::scaled_add(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale) {
  const NamedRange range("scaled_add");
  check_f32({&x, &scale});
  const kernels::Matrix to = matrix(x), from = matrix(a, to.rows, to.columns);
  H3_CUDA(kernels::scaled_add(to, from, floats(scale, to.columns), cuda_queue(q).stream()));
}

void CudaOperators::cast(Queue& q, const Tensor& x, const Tensor& y) {
  const NamedRange range("cast");
  for_each_matrix(std::array{x, y}, [&](const auto& m) { H3_CUDA(kernels::cast(m[0], m[1], cuda_queue(q).stream())); });
}

void CudaOperators::split_halves(Queue& q, const Tensor& x, const Tensor& y) {
  const NamedRange range("split_halves");
  check_dtype(x, DType::f32);
  check_dtype(y, DType::f16);
  const kernels::Matrix from = matrix(x), to = matrix(y, from.rows, 3 * from.columns);
  H3_CUDA(kernels::split_halves(from, to, cuda_queue(q).stream()));
}

void CudaOperators::mean_of(Queue& q, std::span<const Tensor> x, const Tensor& y) {
  const NamedRange range("mean_of");
  CHECK_LE(std::size_t{1}, x.size());
  CHECK_LE(x.size(), std::size_t{kernels::kMaxMeanInputs});
  kernels::MeanInputs inputs;
  inputs.count = static_cast<int>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    check_same_shape(x[i], y);
    check_f32({&x[i], &y});
    check_rows(x[i]);
    H3_CHECK(x[i].contiguous() && y.contiguous(), "means are taken of contiguous tensors");
    inputs.data[i] = x[i].as<const float>();
  }
  check_rows(y);
  H3_CUDA(kernels::mean_of(inputs, y.elements(), y.as<float>(), cuda_queue(q).stream()));
}

void CudaOperators::euler_step(Queue& q, const Tensor& x, const Tensor& v, float one_minus_t, float r,
                               const Tensor& clean) {
  const NamedRange range("euler_step");
  check_f32({&x, &v, &clean});
  for_each_matrix(std::array{x, v, clean ? clean : x}, [&](const auto& m) {
    H3_CUDA(kernels::euler_step(m[0], m[1], one_minus_t, r, clean ? m[2] : kernels::Matrix{}, cuda_queue(q).stream()));
  });
}

void CudaOperators::multistep_correction(Queue& q, const Tensor& x, const Tensor& clean, const Tensor& previous,
                                         float weight) {
  const NamedRange range("multistep_correction");
  check_f32({&x, &clean, &previous});
  for_each_matrix(std::array{x, clean, previous}, [&](const auto& m) {
    H3_CUDA(kernels::multistep_correction(m[0], m[1], m[2], weight, cuda_queue(q).stream()));
  });
}

}  // namespace h3
