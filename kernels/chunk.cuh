// Device helpers of the memory-bound kernels. A thread works on chunks of N neighbouring elements: eight of a half
// type, four where float32 takes part, so that the widest loads there are (16 bytes) of a warp lie side by side. How a
// row is cut into chunks depends on its width and type alone, so that sums do not depend on the alignment of the
// arguments.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/types.h"

namespace h3::kernels {

using bf16 = __nv_bfloat16;
using f16 = __half;

// Elements of a chunk in a kernel over these types.
template <typename... T>
constexpr int kChunk = ((sizeof(T) == 4) || ...) ? 4 : 8;

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

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
  __device__ float2 operator()(float2 a, float2 b) const { return {a.x + b.x, a.y + b.y}; }
  template <typename P>
  __device__ P operator()(P a, P b) const {
    return __hadd2_rn(a, b);
  }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
  __device__ float2 operator()(float2 a, float2 b) const { return {a.x * b.x, a.y * b.y}; }
  template <typename P>
  __device__ P operator()(P a, P b) const {
    return __hmul2_rn(a, b);
  }
};

// N elements as they lie in memory.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  typename PairOf<T>::Type pair[N / 2];
};

// N elements from p, the first `count` of them real and zeros after; `wide` promises 16-byte alignment of whole chunks.
template <int N, typename T>
__device__ inline Pack<T, N> load_pack(const T* p, std::int64_t count, bool wide) {
  using Whole = Pack<T, N>;
  using Unit = std::conditional_t<sizeof(Whole) == 8, uint2, uint4>;
  Whole x;
  if (wide && count >= N) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Whole) / sizeof(Unit)); ++i)
      reinterpret_cast<Unit*>(&x)[i] = reinterpret_cast<const Unit*>(p)[i];
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) reinterpret_cast<T*>(&x)[i] = i < count ? p[i] : from_float<T>(0.0f);
  }
  return x;
}

template <int N, typename T>
__device__ inline void store_pack(T* p, std::int64_t count, bool wide, const Pack<T, N>& x) {
  using Whole = Pack<T, N>;
  using Unit = std::conditional_t<sizeof(Whole) == 8, uint2, uint4>;
  if (wide && count >= N) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Whole) / sizeof(Unit)); ++i)
      reinterpret_cast<Unit*>(p)[i] = reinterpret_cast<const Unit*>(&x)[i];
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count) p[i] = reinterpret_cast<const T*>(&x)[i];
  }
}

template <int N, typename T>
__device__ inline void widen(const Pack<T, N>& x, float (&v)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float2 both = widen_pair(x.pair[i]);
    v[2 * i] = both.x;
    v[2 * i + 1] = both.y;
  }
}

template <typename T, int N>
__device__ inline Pack<T, N> narrow(const float (&v)[N]) {
  Pack<T, N> x;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) narrow_pair(v[2 * i], v[2 * i + 1], x.pair[i]);
  return x;
}

// f of neighbours of a and b, rounded to T once.
template <typename T, int N, typename F>
__device__ inline Pack<T, N> combine(const Pack<T, N>& a, const Pack<T, N>& b, F f) {
  Pack<T, N> x;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) x.pair[i] = f(a.pair[i], b.pair[i]);
  return x;
}

template <int N, typename T>
__device__ inline void load_chunk(const T* p, std::int64_t count, bool wide, float (&v)[N]) {
  widen(load_pack<N>(p, count, wide), v);
}
template <int N, typename T>
__device__ inline void store_chunk(T* p, std::int64_t count, bool wide, const float (&v)[N]) {
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

// A chunk of an operand that no kernel writes (weights, tables) and whose type is known at run time only. It is loaded
// without being looked at, so that several loads are on their way at once.
template <int N>
class Operand {
 public:
  __device__ Operand(const void* data, Element type, std::int64_t offset, std::int64_t count, bool wide) : type_(type) {
    const char* p = static_cast<const char*>(data) + offset * (type == Element::f32 ? 4 : 2);
    if (!wide || count < N) {
      if (type == Element::f32)
        copy<unsigned>(p, count);
      else
        copy<unsigned short>(p, count);
      return;
    }
    // Halves of the float32 chunk; a half type fills the first.
    using Unit = std::conditional_t<N == 4, uint2, uint4>;
    reinterpret_cast<Unit*>(memory_)[0] = __ldg(reinterpret_cast<const Unit*>(p));
    reinterpret_cast<Unit*>(memory_)[1] = type == Element::f32 ? __ldg(reinterpret_cast<const Unit*>(p) + 1) : Unit{};
  }

  __device__ void widen_to(float (&v)[N]) const {
    if (type_ == Element::f32) return widen(as<float>(), v);
    if (type_ == Element::bf16) return widen(as<bf16>(), v);
    widen(as<f16>(), v);
  }
  template <typename T>
  __device__ bool is() const {
    return type_ == ElementOf<T>::kValue;
  }
  template <typename T>
  __device__ const Pack<T, N>& as() const {
    return *reinterpret_cast<const Pack<T, N>*>(memory_);
  }

 private:
  template <typename Unit>
  __device__ void copy(const char* p, std::int64_t count) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      reinterpret_cast<Unit*>(memory_)[i] = i < count ? reinterpret_cast<const Unit*>(p)[i] : Unit{};
  }

  Element type_;
  alignas(16) unsigned memory_[N];
};

// The same with an operand of any type: what is of another type than T is worked out in float32.
template <typename T, int N, typename F>
__device__ inline Pack<T, N> combine(const Pack<T, N>& a, const Operand<N>& b, F f) {
  if (b.template is<T>()) return combine(a, b.template as<T>(), f);
  float v[N], w[N];
  widen(a, v);
  b.widen_to(w);
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = f(v[i], w[i]);
  return narrow<T>(v);
}

template <typename T, int N, typename B>
__device__ inline Pack<T, N> sum(const Pack<T, N>& a, const B& b) {
  return combine(a, b, Sum{});
}
template <typename T, int N, typename B>
__device__ inline Pack<T, N> product(const Pack<T, N>& a, const B& b) {
  return combine(a, b, Product{});
}
template <typename T, int N>
__device__ inline Pack<T, N> one_plus(const Operand<N>& b) {
  float one[N];
#pragma unroll
  for (int i = 0; i < N; ++i) one[i] = 1.0f;
  return sum(narrow<T>(one), b);
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
