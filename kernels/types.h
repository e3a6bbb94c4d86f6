// What every launcher of this folder speaks: element types and views of device memory. Kernels know shapes, not models
// and not the program's tensors; a launcher queues its work on a stream, never waits, and returns the launch's error.
// Empty shapes are legal and launch nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace h3::kernels {

enum class Element : std::uint8_t { f32, bf16, f16 };

constexpr int bytes_of(Element type) {
  return type == Element::f32 ? 4 : 2;
}

// A vector of contiguous elements; null data where an operator may go without it.
struct Vector {
  const void* data = nullptr;
  Element type = Element::f32;
};

// Rows of contiguous elements, `stride` elements apart.
struct Matrix {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;
  Element type = Element::f32;
};

// Attention operands: [rows, heads, d] with d contiguous.
struct Heads {
  void* data = nullptr;
  std::int64_t rows = 0, heads = 0, d = 0;
  std::int64_t row_stride = 0, head_stride = 0;
  Element type = Element::f32;
};

}  // namespace h3::kernels
