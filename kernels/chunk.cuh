// Device helpers of the memory-bound kernels. A thread works on chunks of eight elements, which are 16 or 32 bytes:
// one or two of the widest loads there are. How a row is cut into chunks depends on its width alone, so that a kernel's
// sums do not depend on the element type or on the alignment of its arguments.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/types.h"

namespace h3::kernels {

using bf16 = __nv_bfloat16;
using f16 = __half;

constexpr int kChunk = 8;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bf16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(f16 x) {
  return __half2float(x);
}

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline f16 from_float<f16>(float x) {
  return __float2half_rn(x);
}

template <typename T>
__device__ inline float rounded(float x) {
  return to_float(from_float<T>(x));
}

// Eight elements from p, the first `count` of them real and zeros after; `wide` promises 16-byte alignment.
template <typename T>
__device__ inline void load_chunk(const T* p, std::int64_t count, bool wide, float (&v)[kChunk]) {
  if (wide && count >= kChunk) {
    constexpr int kPieces = kChunk * sizeof(T) / 16;
    constexpr int kEach = 16 / sizeof(T);
    uint4 raw[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) raw[i] = reinterpret_cast<const uint4*>(p)[i];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) v[i] = to_float(reinterpret_cast<const T*>(&raw[i / kEach])[i % kEach]);
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; ++i) v[i] = i < count ? to_float(p[i]) : 0.0f;
  }
}

template <typename T>
__device__ inline void store_chunk(T* p, std::int64_t count, bool wide, const float (&v)[kChunk]) {
  if (wide && count >= kChunk) {
    constexpr int kPieces = kChunk * sizeof(T) / 16;
    constexpr int kEach = 16 / sizeof(T);
    uint4 raw[kPieces];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) reinterpret_cast<T*>(&raw[i / kEach])[i % kEach] = from_float<T>(v[i]);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) reinterpret_cast<uint4*>(p)[i] = raw[i];
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      if (i < count) p[i] = from_float<T>(v[i]);
  }
}

// The same for operands that are small and cached (weights, tables), whose type is known at run time only.
__device__ inline void load_chunk(const void* data, Element type, std::int64_t offset, std::int64_t count, bool wide,
                                  float (&v)[kChunk]) {
  switch (type) {
    case Element::f32:
      return load_chunk(static_cast<const float*>(data) + offset, count, wide, v);
    case Element::bf16:
      return load_chunk(static_cast<const bf16*>(data) + offset, count, wide, v);
    case Element::f16:
      return load_chunk(static_cast<const f16*>(data) + offset, count, wide, v);
  }
}

__device__ inline float load_one(const void* data, Element type, std::int64_t offset) {
  switch (type) {
    case Element::f32:
      return static_cast<const float*>(data)[offset];
    case Element::bf16:
      return to_float(static_cast<const bf16*>(data)[offset]);
    case Element::f16:
      return to_float(static_cast<const f16*>(data)[offset]);
  }
  return 0.0f;
}

// x / (1 + e^-x). Half types take the hardware exponential, whose error is far below their rounding.
template <typename T>
__device__ inline float silu(float x) {
  if (sizeof(T) == 2) return __fdividef(x, 1.0f + __expf(-x));
  return x / (1.0f + expf(-x));
}

}  // namespace h3::kernels
