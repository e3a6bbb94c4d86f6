#include "kernels/elementwise.h"

#include <cfloat>

#include "kernels/chunk.cuh"
#include "kernels/launch.h"

namespace h3::kernels {

namespace {

template <typename T>
__device__ T* at(const Matrix& m, std::int64_t row, std::int64_t column) {
  return static_cast<T*>(m.data) + row * m.stride + column;
}

bool wide_rows(const IndexedRows& t) {
  return aligned16(t.data) && t.stride * bytes_of(t.type) % 16 == 0;
}

// y = f(x) for values of one type.
template <typename T, typename F>
struct Map {
  static constexpr int kColumns = kChunk<T>;
  Matrix x, y;
  bool wide;
  F f;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    float v[kColumns];
    load_chunk(at<const T>(x, row, column), count, wide, v);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) v[i] = f(v[i]);
    store_chunk(at<T>(y, row, column), count, wide, v);
  }
};

template <typename T, typename F>
cudaError_t map(Matrix x, Matrix y, const F& f, cudaStream_t stream) {
  flatten(x, y);
  return for_chunks(x.rows, x.columns, Map<T, F>{x, y, wide(x) && wide(y), f}, stream);
}

template <typename T>
struct Silu {
  __device__ float operator()(float x) const { return silu<T>(x); }
};
struct GeluTanh {
  __device__ float operator()(float x) const {
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * (x * x * x))));
  }
};
struct GeluErf {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
};
struct Sanitize {
  float largest;
  __device__ float operator()(float x) const { return isnan(x) ? 0.0f : isinf(x) ? copysignf(largest, x) : x; }
};
struct Clamp {
  float low, high;
  __device__ float operator()(float x) const { return x < low ? low : x > high ? high : x; }
};

float largest_of(Element type) {
  switch (type) {
    case Element::f32:
      return FLT_MAX;
    case Element::bf16:
      return 0x1.fep127f;
    case Element::f16:
      return 65504.0f;
  }
  return 0.0f;
}

template <typename T>
cudaError_t unary_of(Unary kind, const Matrix& x, const Matrix& y, cudaStream_t stream) {
  switch (kind) {
    case Unary::silu:
      return map<T>(x, y, Silu<T>{}, stream);
    case Unary::gelu_tanh:
      return map<T>(x, y, GeluTanh{}, stream);
    case Unary::gelu_erf:
      return map<T>(x, y, GeluErf{}, stream);
    case Unary::sanitize:
      return map<T>(x, y, Sanitize{largest_of(x.type)}, stream);
  }
  return cudaErrorInvalidValue;
}

template <typename T>
struct Modulate {
  static constexpr int kColumns = kChunk<T>;
  Matrix x, y;
  IndexedRows scale, shift;
  const std::int32_t* index;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Pack<T, kColumns> in = load_pack<kColumns>(at<const T>(x, row, column), count, wide);
    const std::int64_t table_row = index[row];
    const Operand<kColumns> a(scale.data, scale.type, table_row * scale.stride + column, count, wide);
    const Operand<kColumns> b(shift.data, shift.type, table_row * shift.stride + column, count, wide);
    store_pack(at<T>(y, row, column), count, wide, sum(product(in, one_plus<T>(a)), b));
  }
};

template <typename T>
struct GatedAdd {
  static constexpr int kColumns = kChunk<T>;
  Matrix x, a;
  IndexedRows gate;
  const std::int32_t* index;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Pack<T, kColumns> update = load_pack<kColumns>(at<const T>(a, row, column), count, wide);
    const Pack<T, kColumns> in = load_pack<kColumns>(at<const T>(x, row, column), count, wide);
    const Operand<kColumns> g(gate.data, gate.type, index[row] * gate.stride + column, count, wide);
    store_pack(at<T>(x, row, column), count, wide, sum(in, product(update, g)));
  }
};

template <typename T>
struct Add {
  static constexpr int kColumns = kChunk<T>;
  Matrix x, a;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Pack<T, kColumns> other = load_pack<kColumns>(at<const T>(a, row, column), count, wide);
    const Pack<T, kColumns> in = load_pack<kColumns>(at<const T>(x, row, column), count, wide);
    store_pack(at<T>(x, row, column), count, wide, sum(in, other));
  }
};

template <typename A>
struct ScaledAdd {
  static constexpr int kColumns = kChunk<float, A>;
  Matrix x, a;
  const float* scale;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Pack<A, kColumns> update = load_pack<kColumns>(at<const A>(a, row, column), count, wide);
    const Pack<float, kColumns> in = load_pack<kColumns>(at<const float>(x, row, column), count, wide);
    const Pack<float, kColumns> factor = load_pack<kColumns>(scale + column, count, wide);
    float w[kColumns];
    widen(update, w);
    store_pack(at<float>(x, row, column), count, wide, sum(in, product(narrow<float>(w), factor)));
  }
};

template <typename T>
struct SwiGlu {
  static constexpr int kColumns = kChunk<T>;
  Matrix u, y;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Pack<T, kColumns> gate = load_pack<kColumns>(at<const T>(u, row, column), count, wide);
    const Pack<T, kColumns> value = load_pack<kColumns>(at<const T>(u, row, y.columns + column), count, wide);
    float g[kColumns];
    widen(gate, g);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) g[i] = silu<T>(g[i]);
    store_pack(at<T>(y, row, column), count, wide, product(narrow<T>(g), value));
  }
};

template <typename X, typename Y>
struct Cast {
  static constexpr int kColumns = kChunk<X, Y>;
  Matrix x, y;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    float v[kColumns];
    load_chunk(at<const X>(x, row, column), count, wide, v);
    store_chunk(at<Y>(y, row, column), count, wide, v);
  }
};

struct SplitHalves {
  static constexpr int kColumns = kChunk<float, f16>;
  Matrix x, y;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    float v[kColumns], h[kColumns];
    load_chunk(at<const float>(x, row, column), count, wide, v);
    const Pack<f16, kColumns> high = narrow<f16>(v);
    widen(high, h);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) v[i] -= h[i];
    store_pack(at<f16>(y, row, column), count, wide, high);
    store_pack(at<f16>(y, row, x.columns + column), count, wide, high);
    store_chunk(at<f16>(y, row, 2 * x.columns + column), count, wide, v);
  }
};

struct Euler {
  static constexpr int kColumns = kChunk<float>;
  Matrix x, v, clean;
  float one_minus_t, r, one_minus_r;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    float a[kColumns], b[kColumns];
    load_chunk(at<const float>(x, row, column), count, wide, a);
    load_chunk(at<const float>(v, row, column), count, wide, b);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      b[i] = a[i] + one_minus_t * b[i];
      a[i] = r * a[i] + one_minus_r * b[i];
    }
    store_chunk(at<float>(x, row, column), count, wide, a);
    if (clean.data) store_chunk(at<float>(clean, row, column), count, wide, b);
  }
};

struct Multistep {
  static constexpr int kColumns = kChunk<float>;
  Matrix x, clean, previous;
  float weight;
  bool wide;
  __device__ void operator()(std::int64_t row, std::int64_t column, std::int64_t count) const {
    float a[kColumns], d[kColumns], p[kColumns];
    load_chunk(at<const float>(x, row, column), count, wide, a);
    load_chunk(at<const float>(clean, row, column), count, wide, d);
    load_chunk(at<const float>(previous, row, column), count, wide, p);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) a[i] += weight * (p[i] - d[i]);
    store_chunk(at<float>(x, row, column), count, wide, a);
  }
};

struct Mean {
  MeanInputs x;
  float* y;
  float count;
  __device__ void operator()(std::int64_t i) const {
    float sum = x.data[0][i];
    for (int k = 1; k < x.count; ++k) sum += x.data[k][i];
    y[i] = sum / count;
  }
};

}  // namespace

cudaError_t modulate(const Matrix& x, const IndexedRows& scale, const IndexedRows& shift, const std::int32_t* index,
                     const Matrix& y, cudaStream_t stream) {
  if (x.type != y.type) return cudaErrorInvalidValue;
  const bool fast = wide(x) && wide(y) && wide_rows(scale) && wide_rows(shift);
  return with_type(x.type, [&](auto zero) {
    return for_chunks(x.rows, x.columns, Modulate<decltype(zero)>{x, y, scale, shift, index, fast}, stream);
  });
}

cudaError_t gated_add(const Matrix& x, const IndexedRows& gate, const std::int32_t* index, const Matrix& a,
                      cudaStream_t stream) {
  if (x.type != a.type) return cudaErrorInvalidValue;
  const bool fast = wide(x) && wide(a) && wide_rows(gate);
  return with_type(x.type, [&](auto zero) {
    return for_chunks(x.rows, x.columns, GatedAdd<decltype(zero)>{x, a, gate, index, fast}, stream);
  });
}

cudaError_t swiglu(const Matrix& u, const Matrix& y, cudaStream_t stream) {
  if (u.type != y.type || u.columns != 2 * y.columns) return cudaErrorInvalidValue;
  const bool fast = wide(u) && wide(y) && y.columns * bytes_of(y.type) % 16 == 0;
  return with_type(y.type, [&](auto zero) {
    return for_chunks(y.rows, y.columns, SwiGlu<decltype(zero)>{u, y, fast}, stream);
  });
}

cudaError_t unary(Unary kind, const Matrix& x, const Matrix& y, cudaStream_t stream) {
  if (x.type != y.type) return cudaErrorInvalidValue;
  return with_type(x.type, [&](auto zero) { return unary_of<decltype(zero)>(kind, x, y, stream); });
}

cudaError_t clamp(const Matrix& x, float low, float high, cudaStream_t stream) {
  return with_type(x.type, [&](auto zero) { return map<decltype(zero)>(x, x, Clamp{low, high}, stream); });
}

cudaError_t add(const Matrix& x, const Matrix& a, cudaStream_t stream) {
  if (x.type != a.type) return cudaErrorInvalidValue;
  Matrix to = x, from = a;
  flatten(to, from);
  const bool fast = wide(to) && wide(from);
  return with_type(x.type, [&](auto zero) {
    return for_chunks(to.rows, to.columns, Add<decltype(zero)>{to, from, fast}, stream);
  });
}

cudaError_t scaled_add(const Matrix& x, const Matrix& a, const float* scale, cudaStream_t stream) {
  if (x.type != Element::f32) return cudaErrorInvalidValue;
  const bool fast = wide(x) && wide(a) && aligned16(scale);
  return with_type(a.type, [&](auto zero) {
    return for_chunks(x.rows, x.columns, ScaledAdd<decltype(zero)>{x, a, scale, fast}, stream);
  });
}

cudaError_t cast(const Matrix& x, const Matrix& y, cudaStream_t stream) {
  Matrix from = x, to = y;
  flatten(from, to);
  const bool fast = wide(from) && wide(to);
  return with_type(x.type, [&](auto in) {
    return with_type(y.type, [&](auto out) {
      return for_chunks(from.rows, from.columns, Cast<decltype(in), decltype(out)>{from, to, fast}, stream);
    });
  });
}

cudaError_t split_halves(const Matrix& x, const Matrix& y, cudaStream_t stream) {
  if (x.type != Element::f32 || y.type != Element::f16 || y.columns != 3 * x.columns) return cudaErrorInvalidValue;
  const bool fast = wide(x) && wide(y) && x.columns % 8 == 0;
  return for_chunks(x.rows, x.columns, SplitHalves{x, y, fast}, stream);
}

cudaError_t mean_of(const MeanInputs& x, std::int64_t n, float* y, cudaStream_t stream) {
  if (x.count < 1 || x.count > kMaxMeanInputs) return cudaErrorInvalidValue;
  return for_indices(n, Mean{x, y, static_cast<float>(x.count)}, stream);
}

cudaError_t euler_step(const Matrix& x, const Matrix& v, float one_minus_t, float r, const Matrix& clean,
                       cudaStream_t stream) {
  const bool fast = wide(x) && wide(v) && (!clean.data || wide(clean));
  return for_chunks(x.rows, x.columns, Euler{x, v, clean, one_minus_t, r, 1.0f - r, fast}, stream);
}

cudaError_t multistep_correction(const Matrix& x, const Matrix& clean, const Matrix& previous, float weight,
                                 cudaStream_t stream) {
  const bool fast = wide(x) && wide(clean) && wide(previous);
  return for_chunks(x.rows, x.columns, Multistep{x, clean, previous, weight, fast}, stream);
}

}  // namespace h3::kernels
