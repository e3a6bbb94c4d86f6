// A matrix product on the plain float32 units, for operands that are computed as they are loaded: convolutions, and
// linear layers that the libraries do not take. Every output is one chain of fused multiply-adds over k in ascending
// order, so its bits depend on nothing but its own operands: not on tiles, slices, batch or the card.
//
// A Problem has: rows(), columns(), depth(); Tap tap(k), what step k of the sum needs, worked out once a block; Row
// row(i) and Column column(j), what a thread remembers of its row and column; a(row, tap) and b(column, tap), the
// operands; store(i, j, sum); select(z), called first with blockIdx.z.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// n / d for 0 <= n < 2^31 by a multiplication.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t d) : d_(static_cast<unsigned>(d)) {
    while ((1ULL << shift_) < d_) ++shift_;
    factor_ = static_cast<unsigned>((((1ULL << shift_) - d_) << 32) / d_ + 1);
  }
#ifdef __CUDACC__
  __device__ int quotient(int n) const {
    return static_cast<int>((__umulhi(static_cast<unsigned>(n), factor_) + static_cast<unsigned>(n)) >> shift_);
  }
  __device__ int rest(int n, int quotient) const {
    return n - quotient * static_cast<int>(d_);
  }
#endif

 private:
  unsigned d_ = 1, factor_ = 1, shift_ = 0;
};

#ifdef __CUDACC__

constexpr int kProductThreads = 256;
constexpr int kDepth = 8;  // of a tile

// kRows x kColumns outputs a block, kEachRows x kEachColumns (multiples of 4) a thread.
template <typename Problem, int kRows, int kColumns, int kEachRows, int kEachColumns>
__global__ void __launch_bounds__(kProductThreads) tile_product_kernel(Problem problem) {
  constexpr int kAcross = kColumns / kEachColumns;
  static_assert(kRows / kEachRows * kAcross == kProductThreads, "one output patch a thread");
  static_assert(kProductThreads % kColumns == 0 && kDepth * kRows % kProductThreads == 0, "whole loads");
  constexpr int kLoadsA = kDepth * kRows / kProductThreads, kLoadsB = kDepth * kColumns / kProductThreads;
  constexpr int kStepB = kProductThreads / kColumns;
  // Two of each: while a tile is used, the next one is fetched.
  __shared__ __align__(16) float tile_a[2][kDepth][kRows + 4];
  __shared__ __align__(16) float tile_b[2][kDepth][kColumns];
  __shared__ typename Problem::Tap taps[2][kDepth];

  problem.select(static_cast<int>(blockIdx.z));
  const int thread = static_cast<int>(threadIdx.x), depth = problem.depth();
  const int across = thread % kAcross, down = thread / kAcross;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kRows;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kColumns;
  const std::int64_t my_column = first_column + thread % kColumns;
  const bool has_column = my_column < problem.columns();
  const auto column = problem.column(has_column ? my_column : 0);

  float next_a[kLoadsA], next_b[kLoadsB];
  const auto prepare = [&](int tile) {
    const int k = tile * kDepth + thread;
    if (thread < kDepth && k < depth) taps[tile % 2][thread] = problem.tap(k);
  };
  const auto load = [&](int tile) {
    const int left = depth - tile * kDepth;
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int item = thread + i * kProductThreads, k = item % kDepth;
      const std::int64_t row = first_row + item / kDepth;
      next_a[i] = row < problem.rows() && k < left ? problem.a(problem.row(row), taps[tile % 2][k]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = thread / kColumns + i * kStepB;
      next_b[i] = has_column && k < left ? problem.b(column, taps[tile % 2][k]) : 0.0f;
    }
  };

  float sum[kEachRows][kEachColumns] = {};
  const int tiles = (depth + kDepth - 1) / kDepth;
  prepare(0);
  prepare(1);
  __syncthreads();
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    auto& a_now = tile_a[tile % 2];
    auto& b_now = tile_b[tile % 2];
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int item = thread + i * kProductThreads;
      a_now[item % kDepth][item / kDepth] = next_a[i];
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) b_now[thread / kColumns + i * kStepB][thread % kColumns] = next_b[i];
    __syncthreads();
    if (tile + 1 < tiles) load(tile + 1);
    // The taps of this tile are used up since the barrier.
    prepare(tile + 2);
    // Only the last tile is cut, and then k ends with the operands: 0 * 0 is never added to a finished sum.
    const int end = depth - tile * kDepth < kDepth ? depth - tile * kDepth : kDepth;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      if (k >= end) break;
      float a[kEachRows], b[kEachColumns];
#pragma unroll
      for (int i = 0; i < kEachRows; i += 4)
        *reinterpret_cast<float4*>(a + i) =
            *reinterpret_cast<const float4*>(&a_now[k][i / 4 * (4 * kRows / kEachRows) + down * 4]);
#pragma unroll
      for (int j = 0; j < kEachColumns; j += 4)
        *reinterpret_cast<float4*>(b + j) =
            *reinterpret_cast<const float4*>(&b_now[k][j / 4 * (4 * kAcross) + across * 4]);
#pragma unroll
      for (int i = 0; i < kEachRows; ++i)
#pragma unroll
        for (int j = 0; j < kEachColumns; ++j) sum[i][j] = __fmaf_rn(a[i], b[j], sum[i][j]);
    }
  }

#pragma unroll
  for (int i = 0; i < kEachRows; ++i) {
    const std::int64_t row = first_row + i / 4 * (4 * kRows / kEachRows) + down * 4 + i % 4;
    if (row >= problem.rows()) continue;
#pragma unroll
    for (int j = 0; j < kEachColumns; ++j) {
      const std::int64_t out = first_column + j / 4 * (4 * kAcross) + across * 4 + j % 4;
      if (out < problem.columns()) problem.store(row, out, sum[i][j]);
    }
  }
}

template <int kRows, int kColumns, int kEachRows, int kEachColumns, typename Problem>
cudaError_t launch_tiles(const Problem& problem, int layers, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((problem.columns() + kColumns - 1) / kColumns),
                  static_cast<unsigned>((problem.rows() + kRows - 1) / kRows), static_cast<unsigned>(layers));
  if (grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidValue;
  tile_product_kernel<Problem, kRows, kColumns, kEachRows, kEachColumns><<<grid, kProductThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

// `layers` independent products; rows() and columns() hold for each of them.
template <typename Problem>
cudaError_t tile_product(const Problem& problem, int layers, cudaStream_t stream) {
  if (problem.rows() == 0 || problem.columns() == 0 || layers == 0) return cudaSuccess;
  if (problem.rows() <= 32) return launch_tiles<32, 128, 4, 4>(problem, layers, stream);
  return launch_tiles<128, 128, 8, 8>(problem, layers, stream);
}

#endif

}  // namespace h3::kernels
