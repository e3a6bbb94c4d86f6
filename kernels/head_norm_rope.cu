#include "kernels/launch.h"
#include "kernels/norms.h"
#include "kernels/row_norm.cuh"

namespace h3::kernels {

namespace {

// One channel of a pair; `low` is the first of it.
template <typename T>
__device__ float rotate(float own, float other, float cosine, float sine, bool low, bool round_products) {
  float along = own * cosine, across = other * sine;
  if (round_products) {
    along = rounded<T>(along);
    across = rounded<T>(across);
  }
  return low ? along - across : along + across;
}

// `lanes` threads of a warp hold one head, a chunk each; pairs of the rotation meet in shared memory.
template <typename T>
__global__ void __launch_bounds__(kBlock, 5)
    head_norm_rope_kernel(Heads x, HeadNormRope spec, int lanes, bool wide, bool wide_rope) {
  __shared__ __align__(16) float values[kBlock * kChunk];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const unsigned item = blockIdx.x * (kBlock / lanes) + threadIdx.x / lanes;
  const unsigned heads = static_cast<unsigned>(x.heads);
  const std::int64_t row = item / heads, head = item - static_cast<unsigned>(row) * heads;
  const int column = lane * kChunk;
  const std::int64_t count = row < x.rows ? x.d - column : 0;
  T* at = static_cast<T*>(x.data) + row * x.row_stride + head * x.head_stride + column;

  // All loads first: what they bring is needed one after the other.
  const int pairs = static_cast<int>(spec.pairs);
  const bool rotated = column < 2 * pairs;
  const int angle = column < pairs ? column : column - pairs;  // in the wide case a chunk lies on one side of the pairs
  const std::int64_t cos_row = row * spec.cos_stride, sin_row = row * spec.sin_stride;
  const std::int64_t angles = wide_rope && rotated && count > 0 ? kChunk : 0;
  const Pack<T> chunk = load_pack(at, count, wide);
  const Operand weight(spec.weight.data, spec.weight.type, column, spec.weight.data ? count : 0, wide);
  const Operand cosine(spec.cos, spec.table_type, cos_row + angle, angles, true);
  const Operand sine(spec.sin, spec.table_type, sin_row + angle, angles, true);

  float v[kChunk];
  widen(chunk, v);
  if (spec.norm) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) sum = __fmaf_rn(v[i], v[i], sum);
    for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    const float inverse = 1.0f / sqrtf(sum / static_cast<float>(x.d) + spec.eps);
    float w[kChunk];
    if (spec.weight.data) weight.widen_to(w);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      v[i] *= inverse;
      if (spec.round_before_weight) v[i] = rounded<T>(v[i]);
      if (spec.weight.data) v[i] *= w[i];
    }
    widen(narrow<T>(v), v);
  }
  if (pairs > 0) {
    float* mine = values + threadIdx.x * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; i += 4)
      *reinterpret_cast<float4*>(mine + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    __syncwarp();
    const float* whole = values + (threadIdx.x - lane) * kChunk;
    if (angles > 0) {
      const bool low = column < pairs;
      float c[kChunk], s[kChunk], other[kChunk];
      cosine.widen_to(c);
      sine.widen_to(s);
      const float* partner = whole + (low ? column + pairs : column - pairs);
#pragma unroll
      for (int i = 0; i < kChunk; i += 4)
        *reinterpret_cast<float4*>(other + i) = *reinterpret_cast<const float4*>(partner + i);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) v[i] = rotate<T>(v[i], other[i], c[i], s[i], low, spec.round_products);
    } else if (rotated && count > 0) {
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        const int j = column + i;
        if (j >= 2 * pairs) break;
        const bool low = j < pairs;
        const float c = load_one(spec.cos, spec.table_type, cos_row + (low ? j : j - pairs));
        const float s = load_one(spec.sin, spec.table_type, sin_row + (low ? j : j - pairs));
        v[i] = rotate<T>(v[i], whole[low ? j + pairs : j - pairs], c, s, low, spec.round_products);
      }
    }
  }
  if (count > 0) store_chunk(at, count, wide, v);
}

}  // namespace

cudaError_t head_norm_rope(const Heads& x, const HeadNormRope& spec, cudaStream_t stream) {
  if (x.rows == 0 || x.heads == 0 || x.d == 0) return cudaSuccess;
  if (x.d > kMaxHeadSize || x.rows * x.heads > 0x7fffffff || 2 * spec.pairs > x.d) return cudaErrorInvalidValue;
  int lanes = 1;
  while (lanes * kChunk < x.d) lanes *= 2;
  const std::int64_t bytes = bytes_of(x.type), table_bytes = bytes_of(spec.table_type);
  const bool fast =
      aligned16(x.data) && x.row_stride * bytes % 16 == 0 && x.head_stride * bytes % 16 == 0 && wide(spec.weight);
  const bool fast_rope = spec.pairs % kChunk == 0 && aligned16(spec.cos) && aligned16(spec.sin) &&
                         spec.cos_stride * table_bytes % 16 == 0 && spec.sin_stride * table_bytes % 16 == 0;
  const std::int64_t per_block = kBlock / static_cast<unsigned>(lanes);
  const auto blocks = static_cast<unsigned>((x.rows * x.heads + per_block - 1) / per_block);
  return with_type(x.type, [&](auto zero) {
    head_norm_rope_kernel<decltype(zero)><<<blocks, kBlock, 0, stream>>>(x, spec, lanes, fast, fast_rope);
    return cudaGetLastError();
  });
}

}  // namespace h3::kernels
