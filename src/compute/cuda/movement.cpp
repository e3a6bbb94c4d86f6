#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/rows.h"

namespace h3 {

using namespace cuda;

namespace {

std::int64_t row_bytes(const Tensor& t) {
  return t.size(1) * static_cast<std::int64_t>(size_of(t.dtype));
}

kernels::BytePlanes byte_planes(const Tensor& t) {
  check_rows(t);
  const auto size = static_cast<std::int64_t>(size_of(t.dtype));
  return {t.data, t.stride(0) * size, t.stride(1) * size};
}

// Copies of any rank: one matrix where strides allow it, else planes of them, else one call for each index of the first
// axis.
void copy_any(cudaStream_t stream, const Tensor& x, const Tensor& y) {
  Tensor from, to;
  if (as_matrix(x, from) && as_matrix(y, to)) {
    H3_CUDA(kernels::move_rows(byte_rows(from), nullptr, from.size(0), row_bytes(from), byte_rows(to), stream));
    return;
  }
  if (x.rank() == 3) {
    const std::int64_t bytes = x.size(2) * static_cast<std::int64_t>(size_of(x.dtype));
    H3_CUDA(kernels::move_planes(byte_planes(x), x.size(0), x.size(1), bytes, byte_planes(y), stream));
    return;
  }
  for (std::int64_t i = 0; i < x.size(0); ++i) copy_any(stream, x.at(i), y.at(i));
}

}  // namespace

void CudaOperators::copy_rows(Queue& q, const Tensor& x, const Tensor& y) {
  const NamedRange range("copy_rows");
  check_same_shape(x, y);
  check_dtype(y, x.dtype);
  if (x.elements() > 0) copy_any(cuda_queue(q).stream(), x, y);
}

void CudaOperators::gather(Queue& q, const Tensor& x, const Tensor& index, const Tensor& y) {
  const NamedRange range("gather");
  const kernels::ByteRows from = byte_rows(x), to = byte_rows(y);
  check_dtype(y, x.dtype);
  CHECK_EQ(x.size(1), y.size(1));
  const std::int32_t* rows = indices(index, y.size(0));
  H3_CUDA(kernels::move_rows(from, rows, y.size(0), row_bytes(x), to, cuda_queue(q).stream()));
}

void CudaOperators::fill_zero(Queue& q, const Tensor& x) {
  const NamedRange range("fill_zero");
  if (x.elements() == 0) return;
  Tensor rows;
  if (!as_matrix(x, rows)) {
    for (std::int64_t i = 0; i < x.size(0); ++i) fill_zero(q, x.at(i));
    return;
  }
  const auto bytes = static_cast<std::size_t>(row_bytes(rows));
  const auto pitch = static_cast<std::size_t>(rows.stride(0)) * size_of(x.dtype);
  const auto count = static_cast<std::size_t>(rows.size(0));
  const cudaStream_t stream = cuda_queue(q).stream();
  if (count == 1 || pitch == bytes)
    H3_CUDA(cudaMemsetAsync(rows.data, 0, bytes * count, stream));
  else
    H3_CUDA(cudaMemset2DAsync(rows.data, pitch, 0, bytes, count, stream));
}

}  // namespace h3
