// Movers of rows, which look at bytes only.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// Rows of `bytes` bytes, `stride` bytes apart.
struct ByteRows {
  void* data = nullptr;
  std::int64_t stride = 0;
};

// Row i of y = row index[i] of x, or row i where there is no index.
cudaError_t move_rows(const ByteRows& x, const std::int32_t* index, std::int64_t rows, std::int64_t bytes,
                      const ByteRows& y, cudaStream_t stream);

// Copies [planes, rows, bytes] between views whose rows are contiguous.
struct BytePlanes {
  void* data = nullptr;
  std::int64_t plane_stride = 0, row_stride = 0;  // bytes
};
cudaError_t move_planes(const BytePlanes& x, std::int64_t planes, std::int64_t rows, std::int64_t bytes,
                        const BytePlanes& y, cudaStream_t stream);

}  // namespace h3::kernels
