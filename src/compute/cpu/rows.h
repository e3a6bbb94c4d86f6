// How the CPU operators walk tensors: dispatch on the element type, rows as float32 whatever their type, pieces of
// equal tensors in parallel, and scratch memory that a thread keeps between calls. Threads share out outputs only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/dtype.h"
#include "base/error.h"
#include "compute/tensor.h"

namespace h3::cpu {

// Below this many elements an operator stays on one thread.
constexpr std::int64_t kParallelWork = 16384;

// Calls f(T{}) with the C++ type of a float dtype.
template <typename F>
decltype(auto) with_float_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16_t{});
    case DType::f16:
      return f(f16_t{});
    default:
      check_failed(__FILE__, __LINE__, "a float dtype", std::string(name_of(dtype)));
  }
}

// x rounded to T, as float32.
template <typename T>
inline float rounded(float x) {
  return to_f32(from_f32<T>(x));
}

template <typename T>
inline void widen(const T* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_f32(from[i]);
}
template <typename T>
inline void narrow(const float* from, std::int64_t n, T* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_f32<T>(from[i]);
}

// Memory for n floats, 64-byte aligned, that this thread keeps; a slot's old contents are lost.
float* scratch(int slot, std::int64_t n);

// A tensor's rows: all indices of all axes but the last, in row-major order. The last axis must be contiguous.
std::int64_t row_count(const Tensor& t);
std::int64_t row_offset(const Tensor& t, std::int64_t row);
void check_rows(const Tensor& t);
void check_matrix(const Tensor& t, std::int64_t rows, std::int64_t columns);
void check_vector(const Tensor& t, std::int64_t n);

// `n` values at element `offset` as float32: a pointer into the tensor where it is f32, else into `room`.
const float* read_floats(const Tensor& t, std::int64_t offset, std::int64_t n, float* room);
inline const float* read_row(const Tensor& t, std::int64_t row, float* room) {
  return read_floats(t, row * t.stride(0), t.size(-1), room);
}
// A vector [n] in the scratch slot; null for an empty tensor.
const float* read_vector(const Tensor& t, int slot);
// Rounds `n` floats to the tensor's dtype at element `offset`.
void write_floats(const Tensor& t, std::int64_t offset, std::int64_t n, const float* values);

// Calls run(offsets, count) in parallel over pieces of tensors of equal shape; offsets[i] is the element where the
// piece of tensor i starts.
template <std::size_t N, typename F>
void for_each_piece(const std::array<Tensor, N>& tensors, F run) {
  bool flat = true;
  for (const Tensor& t : tensors) {
    H3_CHECK(t.shape == tensors[0].shape, t.shape.text() + " against " + tensors[0].shape.text());
    check_rows(t);
    flat = flat && t.contiguous();
  }
  const std::int64_t total = tensors[0].elements();
  if (total == 0) return;
  constexpr std::int64_t kPiece = 4096;
  if (flat) {
#pragma omp parallel for schedule(static) if (total > kParallelWork)
    for (std::int64_t begin = 0; begin < total; begin += kPiece) {
      std::array<std::int64_t, N> offsets;
      offsets.fill(begin);
      run(offsets, std::min(kPiece, total - begin));
    }
    return;
  }
  const std::int64_t rows = row_count(tensors[0]);
  const std::int64_t columns = tensors[0].size(-1);
#pragma omp parallel for schedule(static) if (total > kParallelWork)
  for (std::int64_t r = 0; r < rows; ++r) {
    std::array<std::int64_t, N> offsets;
    for (std::size_t i = 0; i < N; ++i) offsets[i] = row_offset(tensors[i], r);
    run(offsets, columns);
  }
}

}  // namespace h3::cpu
