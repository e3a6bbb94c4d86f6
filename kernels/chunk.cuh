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

// Two neighbours at once, which is how the hardware converts, adds and multiplies half types. A sum or product of two
// half numbers has the same bits whether it is rounded to half at once or to float32 first: 24 >= 2 * 11 + 2.
template <typename T>
struct PairOf;
template <>
struct PairOf<bf16> {
  using Type = __nv_bfloat162;
};
template <>
struct PairOf<f16> {
  using Type = __half2;
};
template <>
struct PairOf<float> {
  using Type = float2;
};
__device__ inline float2 widen_pair(float2 x) {
  return x;
}
__device__ inline float2 widen_pair(__nv_bfloat162 x) {
  return __bfloat1622float2(x);
}
__device__ inline float2 widen_pair(__half2 x) {
  return __half22float2(x);
}
__device__ inline void narrow_pair(float a, float b, float2& x) {
  x = {a, b};
}
__device__ inline void narrow_pair(float a, float b, __nv_bfloat162& x) {
  x = __floats2bfloat162_rn(a, b);
}
__device__ inline void narrow_pair(float a, float b, __half2& x) {
  x = __floats2half2_rn(a, b);
}
__device__ inline float2 sum_pair(float2 a, float2 b) {
  return {a.x + b.x, a.y + b.y};
}
__device__ inline float2 product_pair(float2 a, float2 b) {
  return {a.x * b.x, a.y * b.y};
}
template <typename P>
__device__ inline P sum_pair(P a, P b) {
  return __hadd2_rn(a, b);
}
template <typename P>
__device__ inline P product_pair(P a, P b) {
  return __hmul2_rn(a, b);
}

// Eight elements as they lie in memory.
template <typename T>
struct alignas(16) Pack {
  typename PairOf<T>::Type pair[kChunk / 2];
};

// Eight elements from p, the first `count` of them real and zeros after; `wide` promises 16-byte alignment.
template <typename T>
__device__ inline Pack<T> load_pack(const T* p, std::int64_t count, bool wide) {
  constexpr int kPieces = kChunk * sizeof(T) / 16;
  Pack<T> x;
  if (wide && count >= kChunk) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) reinterpret_cast<uint4*>(&x)[i] = reinterpret_cast<const uint4*>(p)[i];
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; ++i) reinterpret_cast<T*>(&x)[i] = i < count ? p[i] : from_float<T>(0.0f);
  }
  return x;
}

template <typename T>
__device__ inline void store_pack(T* p, std::int64_t count, bool wide, const Pack<T>& x) {
  constexpr int kPieces = kChunk * sizeof(T) / 16;
  if (wide && count >= kChunk) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) reinterpret_cast<uint4*>(p)[i] = reinterpret_cast<const uint4*>(&x)[i];
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      if (i < count) p[i] = reinterpret_cast<const T*>(&x)[i];
  }
}

template <typename T>
__device__ inline void widen(const Pack<T>& x, float (&v)[kChunk]) {
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) {
    const float2 both = widen_pair(x.pair[i]);
    v[2 * i] = both.x;
    v[2 * i + 1] = both.y;
  }
}

template <typename T>
__device__ inline Pack<T> narrow(const float (&v)[kChunk]) {
  Pack<T> x;
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) narrow_pair(v[2 * i], v[2 * i + 1], x.pair[i]);
  return x;
}

template <typename T>
__device__ inline Pack<T> sum(const Pack<T>& a, const Pack<T>& b) {
  Pack<T> x;
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) x.pair[i] = sum_pair(a.pair[i], b.pair[i]);
  return x;
}
template <typename T>
__device__ inline Pack<T> product(const Pack<T>& a, const Pack<T>& b) {
  Pack<T> x;
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) x.pair[i] = product_pair(a.pair[i], b.pair[i]);
  return x;
}

template <typename T>
__device__ inline void load_chunk(const T* p, std::int64_t count, bool wide, float (&v)[kChunk]) {
  widen(load_pack(p, count, wide), v);
}
template <typename T>
__device__ inline void store_chunk(T* p, std::int64_t count, bool wide, const float (&v)[kChunk]) {
  store_pack(p, count, wide, narrow<T>(v));
}

template <typename T>
struct ElementOf;
template <>
struct ElementOf<float> {
  static constexpr Element kValue = Element::f32;
};
template <>
struct ElementOf<bf16> {
  static constexpr Element kValue = Element::bf16;
};
template <>
struct ElementOf<f16> {
  static constexpr Element kValue = Element::f16;
};

// Eight elements of an operand that no kernel writes (weights, tables) and whose type is known at run time only. It is
// loaded without being looked at, so that several loads are on their way at once.
class Operand {
 public:
  __device__ Operand(const void* data, Element type, std::int64_t offset, std::int64_t count, bool wide) : type_(type) {
    const char* p = static_cast<const char*>(data) + offset * (type == Element::f32 ? 4 : 2);
    if (wide && count >= kChunk) {
      piece_[0] = __ldg(reinterpret_cast<const uint4*>(p));
      piece_[1] = type == Element::f32 ? __ldg(reinterpret_cast<const uint4*>(p) + 1) : uint4{};
    } else if (type == Element::f32) {
      copy<unsigned>(p, count);
    } else {
      copy<unsigned short>(p, count);
    }
  }

  __device__ void widen_to(float (&v)[kChunk]) const {
    if (type_ == Element::f32) return widen(as<float>(), v);
    if (type_ == Element::bf16) return widen(as<bf16>(), v);
    widen(as<f16>(), v);
  }
  template <typename T>
  __device__ bool is() const {
    return type_ == ElementOf<T>::kValue;
  }
  template <typename T>
  __device__ const Pack<T>& as() const {
    return *reinterpret_cast<const Pack<T>*>(piece_);
  }

 private:
  template <typename Unit>
  __device__ void copy(const char* p, std::int64_t count) {
    piece_[0] = piece_[1] = {};
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      if (i < count) reinterpret_cast<Unit*>(piece_)[i] = reinterpret_cast<const Unit*>(p)[i];
  }

  Element type_;
  uint4 piece_[2];
};

// 1 + b, a + b and a * b in float32, each rounded to T once.
template <typename T>
__device__ inline Pack<T> one_plus(const Operand& b) {
  if (b.is<T>()) {
    Pack<T> one;
#pragma unroll
    for (int i = 0; i < kChunk / 2; ++i) narrow_pair(1.0f, 1.0f, one.pair[i]);
    return sum(one, b.as<T>());
  }
  float v[kChunk];
  b.widen_to(v);
#pragma unroll
  for (int i = 0; i < kChunk; ++i) v[i] = 1.0f + v[i];
  return narrow<T>(v);
}
template <typename T>
__device__ inline Pack<T> sum(const Pack<T>& a, const Operand& b) {
  if (b.is<T>()) return sum(a, b.as<T>());
  float v[kChunk], w[kChunk];
  widen(a, v);
  b.widen_to(w);
#pragma unroll
  for (int i = 0; i < kChunk; ++i) v[i] += w[i];
  return narrow<T>(v);
}
template <typename T>
__device__ inline Pack<T> product(const Pack<T>& a, const Operand& b) {
  if (b.is<T>()) return product(a, b.as<T>());
  float v[kChunk], w[kChunk];
  widen(a, v);
  b.widen_to(w);
#pragma unroll
  for (int i = 0; i < kChunk; ++i) v[i] *= w[i];
  return narrow<T>(v);
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
