// The frame of the row norms: kLanes threads share a row; each keeps its first chunks in registers between the passes
// over the row and reads the others again, from the cache.
#pragma once

#include "kernels/chunk.cuh"

namespace h3::kernels {

constexpr int kWarp = 32;
constexpr int kNormBlock = 128;
constexpr int kNormBlocks = 8;  // of a multiprocessor, at least: enough rows on their way to fill its memory pipe

constexpr int kKeptChunks = 6;  // of its row that a thread keeps

// Sum over the kLanes threads of a row, the same value in all of them.
template <int kLanes>
__device__ inline float row_sum(float v) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (kLanes == kWarp) return v;
  __shared__ float warps[kLanes / kWarp];
  __syncthreads();  // an earlier sum's readers are done
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = v;
  __syncthreads();
  v = 0.0f;
#pragma unroll
  for (int i = 0; i < kLanes / kWarp; ++i) v += warps[i];
  return v;
}

// kWide: rows are aligned and consist of whole chunks.
template <typename X, int kLanes, bool kWide>
class Row {
 public:
  __device__ Row(const X* x, int width, int lane) : x_(x), width_(width), lane_(lane) {
#pragma unroll
    for (int k = 0; k < kKeptChunks; ++k)
      if (column(k) < width_) kept_[k] = read(k);
  }

  static constexpr int kColumns = kChunk<X>;

  // Adds a row times a vector of scales, each product and sum rounded, and writes the row back to `x`.
  template <typename A>
  __device__ void add_scaled(X* x, const A* a, const float* scale) {
    Pack<A, kColumns> updates[kKeptChunks];
#pragma unroll
    for (int k = 0; k < kKeptChunks; ++k)
      if (column(k) < width_) updates[k] = load_pack<kColumns>(a + column(k), count(k), kWide);
    const auto add = [&](int k, const Pack<X, kColumns>& chunk, const Pack<A, kColumns>& update) {
      const Operand<kColumns> factor(scale, Element::f32, column(k), count(k), kWide);
      float v[kColumns];
      widen(update, v);
      const Pack<X, kColumns> next = h3::kernels::sum(chunk, product(narrow<X>(v), factor));
      store_pack(x + column(k), count(k), kWide, next);
      return next;
    };
#pragma unroll
    for (int k = 0; k < kKeptChunks; ++k)
      if (column(k) < width_) kept_[k] = add(k, kept_[k], updates[k]);
    for (int k = kKeptChunks; column(k) < width_; ++k)
      add(k, read(k), load_pack<kColumns>(a + column(k), count(k), kWide));
  }

  // Calls f(first column, a chunk, how many of it are real) for this thread's chunks in order.
  template <typename F>
  __device__ void each(F f) const {
#pragma unroll
    for (int k = 0; k < kKeptChunks; ++k)
      if (column(k) < width_) f(column(k), kept_[k], count(k));
    for (int k = kKeptChunks; column(k) < width_; ++k) f(column(k), read(k), count(k));
  }

  // Sum over the row: total = f(total, value) for each of this thread's real values, then over threads.
  template <typename F>
  __device__ float sum(F f) const {
    float total = 0.0f;
    each([&](int, const Pack<X, kColumns>& chunk, int count) {
      float v[kColumns];
      widen(chunk, v);
#pragma unroll
      for (int i = 0; i < kColumns; ++i)
        if (i < count) total = f(total, v[i]);
    });
    return row_sum<kLanes>(total);
  }

 private:
  __device__ int column(int k) const {
    return (k * kLanes + lane_) * kColumns;
  }
  __device__ int count(int k) const {
    return kWide ? kColumns : width_ - column(k);
  }
  __device__ Pack<X, kColumns> read(int k) const {
    return load_pack<kColumns>(x_ + column(k), count(k), kWide);
  }

  const X* x_;
  int width_;
  int lane_;
  Pack<X, kColumns> kept_[kKeptChunks];
};

// Does a row of this width and type belong to one warp?
inline bool narrow_row(std::int64_t width, Element type) {
  return width * bytes_of(type) <= kKeptChunks * kWarp * 16;
}

}  // namespace h3::kernels
