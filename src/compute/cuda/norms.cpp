#include "kernels/norms.h"
#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/elementwise.h"

namespace h3 {

using namespace cuda;

namespace {

// Index values are the caller's promise: looking at them would make the host wait for the device.
kernels::Modulation modulation_of(const Tensor& scale, const Tensor& shift, const Tensor& index, std::int64_t rows,
                                  std::int64_t width) {
  const kernels::Matrix scales = matrix(scale, scale.size(0), width), shifts = matrix(shift, scale.size(0), width);
  check_dtype(shift, scale.dtype);
  return {scales.data, shifts.data, scales.stride, shifts.stride, scales.type, indices(index, rows)};
}

}  // namespace

void CudaOperators::rms_norm(Queue& q, const Tensor& x, const Tensor& weight, float eps, NormRounding rounding,
                             const Tensor& y) {
  const NamedRange range("rms_norm");
  const kernels::Matrix from = matrix(x), to = matrix(y, from.rows, from.columns);
  kernels::RmsNorm norm;
  norm.weight = vector(weight, from.columns);
  norm.eps = eps;
  norm.round_before_weight = rounding == NormRounding::before_weight;
  H3_CUDA(kernels::rms_norm(from, norm, to, cuda_queue(q).stream()));
}

void CudaOperators::norm_modulate(Queue& q, const Tensor& x, const Tensor& weight, float eps, const Tensor& scale,
                                  const Tensor& shift, const Tensor& index, const Tensor& y) {
  const NamedRange range("norm_modulate");
  const kernels::Matrix from = matrix(x), to = matrix(y, from.rows, from.columns);
  kernels::RmsNorm norm;
  norm.weight = vector(weight, from.columns);
  norm.eps = eps;
  norm.modulation = modulation_of(scale, shift, index, from.rows, from.columns);
  H3_CUDA(kernels::rms_norm(from, norm, to, cuda_queue(q).stream()));
}

void CudaOperators::scaled_add_norm(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale,
                                    const Tensor& weight, float eps, const Tensor& y) {
  const NamedRange range("scaled_add_norm");
  check_dtype(x, DType::f32);
  const kernels::Matrix to = matrix(x), update = matrix(a, to.rows, to.columns), out = matrix(y, to.rows, to.columns);
  const kernels::Vector w = vector(weight, to.columns);
  H3_CUDA(kernels::scaled_add_norm(to, update, floats(scale, to.columns), w, eps, out, cuda_queue(q).stream()));
}

void CudaOperators::layer_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                               const Tensor& y) {
  const NamedRange range("layer_norm");
  const kernels::Matrix from = matrix(x), to = matrix(y, from.rows, from.columns);
  const kernels::Vector w = vector(weight, from.columns), b = vector(bias, from.columns);
  H3_CUDA(kernels::layer_norm(from, w, b, eps, to, cuda_queue(q).stream()));
}

void CudaOperators::group_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t groups,
                               float eps, bool silu, const Tensor& y) {
  const NamedRange range("group_norm");
  check_same_shape(x, y);
  const kernels::Planes from = planes(x), to = planes(y);
  CHECK_GE(groups, 1);
  CHECK_EQ(from.channels % groups, 0);
  const float* w = floats(weight, from.channels);
  const float* b = floats(bias, from.channels);
  H3_CUDA(kernels::group_norm(from, w, b, groups, eps, silu, to, cuda_queue(q).stream()));
}

void CudaOperators::modulate(Queue& q, const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& index,
                             const Tensor& y) {
  const NamedRange range("modulate");
  const kernels::Matrix from = matrix(x), to = matrix(y, from.rows, from.columns);
  check_dtype(y, x.dtype);
  const kernels::Modulation m = modulation_of(scale, shift, index, from.rows, from.columns);
  H3_CUDA(kernels::modulate(from, {m.scale, m.scale_stride, m.type}, {m.shift, m.shift_stride, m.type}, m.index, to,
                            cuda_queue(q).stream()));
}

void CudaOperators::gated_add(Queue& q, const Tensor& x, const Tensor& gate, const Tensor& index, const Tensor& a) {
  const NamedRange range("gated_add");
  const kernels::Matrix to = matrix(x), from = matrix(a, to.rows, to.columns);
  check_dtype(a, x.dtype);
  const kernels::Matrix gates = matrix(gate, gate.size(0), to.columns);
  H3_CUDA(kernels::gated_add(to, {gates.data, gates.stride, gates.type}, indices(index, to.rows), from,
                             cuda_queue(q).stream()));
}

void CudaOperators::head_norm_rope(Queue& q, const Tensor& x, const HeadNormRope& spec) {
  const NamedRange range("head_norm_rope");
  const kernels::Heads at = heads(x);
  CHECK_LE(at.d, kernels::kMaxHeadSize);
  kernels::HeadNormRope rope;
  rope.weight = vector(spec.weight, at.d);
  rope.eps = spec.eps;
  rope.norm = spec.norm;
  rope.round_before_weight = spec.rounding == NormRounding::before_weight;
  rope.round_products = spec.round_products;
  if (spec.cos) {
    rope.pairs = spec.cos.size(1);
    CHECK_LE(2 * rope.pairs, at.d);
    const kernels::Matrix cos = matrix(spec.cos, at.rows, rope.pairs), sin = matrix(spec.sin, at.rows, rope.pairs);
    check_dtype(spec.sin, spec.cos.dtype);
    rope.cos = cos.data;
    rope.sin = sin.data;
    rope.cos_stride = cos.stride;
    rope.sin_stride = sin.stride;
    rope.table_type = cos.type;
  }
  H3_CUDA(kernels::head_norm_rope(at, rope, cuda_queue(q).stream()));
}

}  // namespace h3
