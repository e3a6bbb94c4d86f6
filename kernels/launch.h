// Host helpers of the launchers: from run-time element types to template arguments, alignment, and the walk over chunks
// that all element-wise kernels share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/types.h"

namespace h3::kernels {

// Calls f(T{}) for the element type T that `type` names.
template <typename F>
cudaError_t with_type(Element type, F f) {
  switch (type) {
    case Element::f32:
      return f(float{});
    case Element::bf16:
      return f(__nv_bfloat16{});
    case Element::f16:
      return f(__half{});
  }
  return cudaErrorInvalidValue;
}

inline bool aligned16(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

// Is every chunk of eight columns, and every half of one, aligned for the accesses that fit it?
inline bool wide(const Matrix& m) {
  return aligned16(m.data) && (m.rows <= 1 || m.stride * bytes_of(m.type) % 16 == 0);
}
inline bool wide(const Vector& v) {
  return aligned16(v.data);
}

template <typename... M>
bool contiguous(const M&... m) {
  return ((m.rows <= 1 || m.stride == m.columns) && ...);
}

// Sees contiguous matrices as one row, which saves kernels a division.
template <typename... M>
void flatten(M&... m) {
  if (contiguous(m...)) ((m = Matrix{m.data, m.rows ? 1 : 0, m.rows * m.columns, m.rows * m.columns, m.type}), ...);
}

constexpr unsigned kBlock = 256;

inline unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kBlock - 1) / kBlock);
}

#ifdef __CUDACC__

// Runs body(row, first column, columns left) once for every chunk of Body::kColumns columns.
template <typename Body>
__global__ void __launch_bounds__(kBlock)
    chunk_kernel(unsigned chunks, unsigned chunks_per_row, std::int64_t columns, Body body) {
  const unsigned i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= chunks) return;
  const unsigned row = i / chunks_per_row;
  const std::int64_t column = static_cast<std::int64_t>(i - row * chunks_per_row) * Body::kColumns;
  body(static_cast<std::int64_t>(row), column, columns - column);
}

template <typename Body>
cudaError_t for_chunks(std::int64_t rows, std::int64_t columns, const Body& body, cudaStream_t stream) {
  const std::int64_t per_row = (columns + Body::kColumns - 1) / Body::kColumns;
  const std::int64_t chunks = rows * per_row;
  if (chunks == 0) return cudaSuccess;
  if (chunks > 0xffffff00LL) return cudaErrorInvalidValue;
  chunk_kernel<<<blocks_for(chunks), kBlock, 0, stream>>>(static_cast<unsigned>(chunks), static_cast<unsigned>(per_row),
                                                          columns, body);
  return cudaGetLastError();
}

// Runs body(i) once for every i below n.
template <typename Body>
__global__ void __launch_bounds__(kBlock) index_kernel(std::int64_t n, Body body) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < n) body(i);
}

template <typename Body>
cudaError_t for_indices(std::int64_t n, const Body& body, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  if (n > static_cast<std::int64_t>(kBlock) * 0x7fffffff) return cudaErrorInvalidValue;
  index_kernel<<<blocks_for(n), kBlock, 0, stream>>>(n, body);
  return cudaGetLastError();
}

#endif

}  // namespace h3::kernels
