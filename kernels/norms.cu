#include "kernels/norms.h"

#include <type_traits>

#include "kernels/launch.h"
#include "kernels/row_norm.cuh"

namespace h3::kernels {

namespace {

template <typename X, typename Y, int kLanes, bool kWide>
__global__ void __launch_bounds__(kNormBlock, kNormBlocks) rms_norm_kernel(Matrix x, RmsNorm norm, Matrix y) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * (kNormBlock / kLanes) + threadIdx.x / kLanes;
  if (r >= x.rows) return;  // whole rows leave, so the others' sums are complete
  constexpr int N = kChunk<X>;
  const int width = static_cast<int>(x.columns);
  const Row<X, kLanes, kWide> row(static_cast<const X*>(x.data) + r * x.stride, width, threadIdx.x % kLanes);
  const float mean = row.sum([](float sum, float v) { return __fmaf_rn(v, v, sum); }) / static_cast<float>(width);
  const float inverse = __frsqrt_rn(mean + norm.eps);
  const Modulation& m = norm.modulation;
  const std::int64_t table_row = m.index ? m.index[r] : 0;
  Y* out = static_cast<Y*>(y.data) + r * y.stride;
  row.each([&](int column, const Pack<X, N>& chunk, int count) {
    float v[N];
    widen(chunk, v);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] *= inverse;
      if (norm.round_before_weight) v[i] = rounded<Y>(v[i]);
    }
    if (norm.weight.data) {
      float w[N];
      Operand<N>(norm.weight.data, norm.weight.type, column, count, kWide).widen_to(w);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] *= w[i];
    }
    Pack<Y, N> n = narrow<Y>(v);
    if (m.index) {
      const Operand<N> scale(m.scale, m.type, table_row * m.scale_stride + column, count, kWide);
      const Operand<N> shift(m.shift, m.type, table_row * m.shift_stride + column, count, kWide);
      n = sum(product(n, one_plus<Y>(scale)), shift);
    }
    store_pack(out + column, count, kWide, n);
  });
}

template <typename A, typename Y, int kLanes, bool kWide>
__global__ void __launch_bounds__(kNormBlock, kNormBlocks)
    scaled_add_norm_kernel(Matrix x, Matrix a, const float* scale, Vector weight, float eps, Matrix y) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * (kNormBlock / kLanes) + threadIdx.x / kLanes;
  if (r >= x.rows) return;
  constexpr int N = kChunk<float>;
  const int width = static_cast<int>(x.columns);
  float* in = static_cast<float*>(x.data) + r * x.stride;
  Row<float, kLanes, kWide> row(in, width, threadIdx.x % kLanes);
  row.add_scaled(in, static_cast<const A*>(a.data) + r * a.stride, scale);
  const float mean = row.sum([](float sum, float v) { return __fmaf_rn(v, v, sum); }) / static_cast<float>(width);
  const float inverse = __frsqrt_rn(mean + eps);
  Y* out = static_cast<Y*>(y.data) + r * y.stride;
  row.each([&](int column, const Pack<float, N>& chunk, int count) {
    float v[N];
    widen(chunk, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= inverse;
    if (weight.data) {
      float w[N];
      Operand<N>(weight.data, weight.type, column, count, kWide).widen_to(w);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] *= w[i];
    }
    store_chunk(out + column, count, kWide, v);
  });
}

template <typename X, typename Y, int kLanes, bool kWide>
__global__ void __launch_bounds__(kNormBlock, kNormBlocks)
    layer_norm_kernel(Matrix x, Vector weight, Vector bias, float eps, Matrix y) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * (kNormBlock / kLanes) + threadIdx.x / kLanes;
  if (r >= x.rows) return;
  constexpr int N = kChunk<X>;
  const int width = static_cast<int>(x.columns);
  const Row<X, kLanes, kWide> row(static_cast<const X*>(x.data) + r * x.stride, width, threadIdx.x % kLanes);
  const float mean = row.sum([](float sum, float v) { return sum + v; }) / static_cast<float>(width);
  const float variance =
      row.sum([mean](float sum, float v) { return __fmaf_rn(v - mean, v - mean, sum); }) / static_cast<float>(width);
  const float inverse = __frsqrt_rn(variance + eps);
  Y* out = static_cast<Y*>(y.data) + r * y.stride;
  row.each([&](int column, const Pack<X, N>& chunk, int count) {
    float v[N], operand[N];
    widen(chunk, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = (v[i] - mean) * inverse;
    if (weight.data) {
      Operand<N>(weight.data, weight.type, column, count, kWide).widen_to(operand);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] *= operand[i];
    }
    if (bias.data) {
      Operand<N>(bias.data, bias.type, column, count, kWide).widen_to(operand);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] += operand[i];
    }
    store_chunk(out + column, count, kWide, v);
  });
}

// Calls f(X{}, Y{}) for the pairs that norms take: equal types, or f32 in and a half type out.
template <typename F>
cudaError_t with_pair(Element x, Element y, F f) {
  if (x != y && x != Element::f32) return cudaErrorInvalidValue;
  return with_type(y, [&](auto out) {
    if (x == Element::f32) return f(float{}, out);
    return f(out, out);
  });
}

constexpr std::int64_t kMaxRow = 1 << 30;

unsigned norm_blocks(const Matrix& x) {
  const std::int64_t per_block = narrow_row(x.columns, x.type) ? kNormBlock / kWarp : 1;
  return static_cast<unsigned>((x.rows + per_block - 1) / per_block);
}

bool wide_tables(const Modulation& m) {
  if (!m.index) return true;
  const std::int64_t bytes = bytes_of(m.type);
  return aligned16(m.scale) && aligned16(m.shift) && m.scale_stride * bytes % 16 == 0 &&
         m.shift_stride * bytes % 16 == 0;
}

// Calls f(lanes, wide) with the two as integral constants.
template <typename F>
cudaError_t with_rows(const Matrix& x, bool wide, F f) {
  using Warp = std::integral_constant<int, kWarp>;
  using Block = std::integral_constant<int, kNormBlock>;
  const bool narrow = narrow_row(x.columns, x.type);
  if (wide) return narrow ? f(Warp{}, std::true_type{}) : f(Block{}, std::true_type{});
  return narrow ? f(Warp{}, std::false_type{}) : f(Block{}, std::false_type{});
}

bool whole_chunks(const Matrix& x) {
  return x.columns % 8 == 0;
}

}  // namespace

cudaError_t rms_norm(const Matrix& x, const RmsNorm& norm, const Matrix& y, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return cudaSuccess;
  if (x.columns > kMaxRow) return cudaErrorInvalidValue;
  const bool fast = whole_chunks(x) && wide(x) && wide(y) && wide(norm.weight) && wide_tables(norm.modulation);
  return with_pair(x.type, y.type, [&](auto in, auto out) {
    return with_rows(x, fast, [&](auto lanes, auto whole) {
      rms_norm_kernel<decltype(in), decltype(out), decltype(lanes)::value, decltype(whole)::value>
          <<<norm_blocks(x), kNormBlock, 0, stream>>>(x, norm, y);
      return cudaGetLastError();
    });
  });
}

cudaError_t scaled_add_norm(const Matrix& x, const Matrix& a, const float* scale, const Vector& weight, float eps,
                            const Matrix& y, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return cudaSuccess;
  if (x.type != Element::f32 || x.columns > kMaxRow) return cudaErrorInvalidValue;
  const bool fast = whole_chunks(x) && wide(x) && wide(a) && wide(y) && aligned16(scale) && wide(weight);
  return with_pair(a.type, y.type, [&](auto in, auto out) {
    return with_rows(x, fast, [&](auto lanes, auto whole) {
      scaled_add_norm_kernel<decltype(in), decltype(out), decltype(lanes)::value, decltype(whole)::value>
          <<<norm_blocks(x), kNormBlock, 0, stream>>>(x, a, scale, weight, eps, y);
      return cudaGetLastError();
    });
  });
}

cudaError_t layer_norm(const Matrix& x, const Vector& weight, const Vector& bias, float eps, const Matrix& y,
                       cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return cudaSuccess;
  if (x.columns > kMaxRow) return cudaErrorInvalidValue;
  const bool fast = whole_chunks(x) && wide(x) && wide(y) && wide(weight) && wide(bias);
  return with_pair(x.type, y.type, [&](auto in, auto out) {
    return with_rows(x, fast, [&](auto lanes, auto whole) {
      layer_norm_kernel<decltype(in), decltype(out), decltype(lanes)::value, decltype(whole)::value>
          <<<norm_blocks(x), kNormBlock, 0, stream>>>(x, weight, bias, eps, y);
      return cudaGetLastError();
    });
  });
}

namespace {

// One block a frame and group. Values are walked with consecutive threads on consecutive pixels.
struct GroupWalk {
  std::int64_t channels, height, width;
  std::int64_t count() const { return channels * height * width; }
  template <typename F>
  __device__ void each(F f) const {
    const unsigned total = static_cast<unsigned>(channels * height * width);
    for (unsigned i = threadIdx.x; i < total; i += blockDim.x) {
      const unsigned row = i / static_cast<unsigned>(width), column = i - row * static_cast<unsigned>(width);
      const unsigned channel = row / static_cast<unsigned>(height),
                     line = row - channel * static_cast<unsigned>(height);
      f(channel, line, column);
    }
  }
};

constexpr int kGroupBlock = 512;

__global__ void __launch_bounds__(kGroupBlock) group_norm_kernel(Planes x, const float* weight, const float* bias,
                                                                 GroupWalk walk, float eps, bool silu_after, Planes y) {
  const std::int64_t first = blockIdx.x * walk.channels;
  const float* in = x.data + first * x.channel_stride + blockIdx.y * x.frame_stride;
  float* out = y.data + first * y.channel_stride + blockIdx.y * y.frame_stride;
  const auto value = [&](unsigned c, unsigned h, unsigned w) {
    return in[c * x.channel_stride + h * x.row_stride + w];
  };
  const float count = static_cast<float>(walk.channels * walk.height * walk.width);
  float sum = 0.0f;
  walk.each([&](unsigned c, unsigned h, unsigned w) { sum += value(c, h, w); });
  const float mean = row_sum<kGroupBlock>(sum) / count;
  sum = 0.0f;
  walk.each([&](unsigned c, unsigned h, unsigned w) {
    const float d = value(c, h, w) - mean;
    sum += d * d;
  });
  const float variance = row_sum<kGroupBlock>(sum) / count;
  const float inverse = __frsqrt_rn(variance + eps);
  walk.each([&](unsigned c, unsigned h, unsigned w) {
    const float n = (value(c, h, w) - mean) * inverse * weight[first + c] + bias[first + c];
    out[c * y.channel_stride + h * y.row_stride + w] = silu_after ? silu<float>(n) : n;
  });
}

}  // namespace

cudaError_t group_norm(const Planes& x, const float* weight, const float* bias, std::int64_t groups, float eps,
                       bool silu, const Planes& y, cudaStream_t stream) {
  const GroupWalk walk{x.channels / groups, x.height, x.width};
  if (walk.count() == 0 || x.frames == 0) return cudaSuccess;
  if (walk.count() > 0x7fffffff) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(groups), static_cast<unsigned>(x.frames));
  group_norm_kernel<<<grid, kGroupBlock, 0, stream>>>(x, weight, bias, walk, eps, silu, y);
  return cudaGetLastError();
}

}  // namespace h3::kernels
