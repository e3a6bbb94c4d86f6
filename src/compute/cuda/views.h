// The kernels' views of the program's tensors, checked: place, rank, sizes, element types, contiguous last axes.
#pragma once

#include <array>

#include "compute/tensor.h"
#include "kernels/audio.h"
#include "kernels/norms.h"
#include "kernels/rows.h"
#include "kernels/types.h"
#include "kernels/video.h"

namespace h3::cuda {

kernels::Element element_of(DType dtype);

void check_memory(const Tensor& t);  // in device memory
// In device memory, with a contiguous last axis.
void check_rows(const Tensor& t);
void check_dtype(const Tensor& t, DType dtype);
void check_same_shape(const Tensor& a, const Tensor& b);

kernels::Matrix matrix(const Tensor& t);                                           // [m, n]
kernels::Matrix matrix(const Tensor& t, std::int64_t rows, std::int64_t columns);  // of exactly this shape
kernels::Vector vector(const Tensor& t, std::int64_t n);                           // [n], or empty
const float* floats(const Tensor& t, std::int64_t n);                              // f32 [n]
const float* floats_or_none(const Tensor& t, std::int64_t n);                      // f32 [n], or empty
const std::int32_t* indices(const Tensor& t, std::int64_t n);                      // i32 [n]
kernels::Heads heads(const Tensor& t);                                             // [rows, heads, d]
kernels::View4 view4(const Tensor& t);         // up to 4 axes, which are the view's last; any strides
kernels::Planes planes(const Tensor& t);       // f32 [channels, frames, h, w]
kernels::Signal signal(const Tensor& t);       // f32 [batch, channels, length]
kernels::ByteRows byte_rows(const Tensor& t);  // any dtype, [m, n]

// Sees axes 0 .. rank - 2 as one axis of rows, where strides allow it.
bool as_matrix(const Tensor& t, Tensor& rows);

// Calls run(matrices) over tensors of one shape and any rank: once where they can be seen as matrices, else once for
// each index of the first axis.
template <std::size_t N, typename F>
void for_each_matrix(const std::array<Tensor, N>& tensors, const F& run) {
  std::array<Tensor, N> rows;
  bool together = true;
  for (std::size_t i = 0; i < N; ++i) {
    check_same_shape(tensors[0], tensors[i]);
    together = as_matrix(tensors[i], rows[i]) && together;
  }
  if (tensors[0].elements() == 0) return;
  if (together) {
    std::array<kernels::Matrix, N> matrices;
    for (std::size_t i = 0; i < N; ++i) matrices[i] = matrix(rows[i]);
    run(matrices);
    return;
  }
  for (std::int64_t k = 0; k < tensors[0].size(0); ++k) {
    for (std::size_t i = 0; i < N; ++i) rows[i] = tensors[i].at(k);
    for_each_matrix(rows, run);
  }
}

}  // namespace h3::cuda
