// The frame of the row norms: kLanes threads share a row; each keeps its first chunks in registers between the passes
// over the row and reads the others again, from the cache.
#pragma once

#include "kernels/chunk.cuh"

namespace h3::kernels {

constexpr int kKept = 6;
constexpr int kWarp = 32;

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

template <typename X, int kLanes>
class Row {
 public:
  __device__ Row(const X* x, int width, bool wide, int lane) : x_(x), width_(width), wide_(wide), lane_(lane) {
#pragma unroll
    for (int k = 0; k < kKept; ++k)
      if (column(k) < width_) kept_[k] = read(k);
  }

  // Calls f(first column, eight elements, how many are real) for this thread's chunks in order.
  template <typename F>
  __device__ void each(F f) const {
#pragma unroll
    for (int k = 0; k < kKept; ++k)
      if (column(k) < width_) f(column(k), kept_[k], width_ - column(k));
    for (int k = kKept; column(k) < width_; ++k) f(column(k), read(k), width_ - column(k));
  }

  // Sum over the row: total = f(total, value) for each of this thread's real values, then over threads.
  template <typename F>
  __device__ float sum(F f) const {
    float total = 0.0f;
    each([&](int, const Pack<X>& chunk, int count) {
      float v[kChunk];
      widen(chunk, v);
#pragma unroll
      for (int i = 0; i < kChunk; ++i)
        if (i < count) total = f(total, v[i]);
    });
    return row_sum<kLanes>(total);
  }

 private:
  __device__ int column(int k) const {
    return (k * kLanes + lane_) * kChunk;
  }
  __device__ Pack<X> read(int k) const {
    return load_pack(x_ + column(k), width_ - column(k), wide_);
  }

  const X* x_;
  int width_;
  bool wide_;
  int lane_;
  Pack<X> kept_[kKept];
};

constexpr int kNormBlock = 128;
inline bool narrow_row(std::int64_t width) {
  return width <= kKept * kChunk * kWarp;
}

}  // namespace h3::kernels
