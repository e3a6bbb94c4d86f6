#include "kernels/launch.h"
#include "kernels/norms.h"
#include "kernels/row_norm.cuh"

namespace h3::kernels {

namespace {

// `lanes` threads of a warp hold one head, a chunk each; pairs of the rotation meet in shared memory.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    head_norm_rope_kernel(Heads x, HeadNormRope spec, int lanes, bool wide, bool wide_rope) {
  __shared__ float values[kBlock * kChunk];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const unsigned item = blockIdx.x * (kBlock / lanes) + threadIdx.x / lanes;
  const unsigned heads = static_cast<unsigned>(x.heads);
  const std::int64_t row = item / heads, head = item - static_cast<unsigned>(row) * heads;
  const int column = lane * kChunk;
  const std::int64_t count = row < x.rows ? x.d - column : 0;
  T* at = static_cast<T*>(x.data) + row * x.row_stride + head * x.head_stride + column;

  float v[kChunk] = {};
  if (count > 0) load_chunk(at, count, wide, v);
  if (spec.norm) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) sum += v[i] * v[i];
    for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    const float inverse = 1.0f / sqrtf(sum / static_cast<float>(x.d) + spec.eps);
    float w[kChunk];
    if (spec.weight.data && count > 0) load_chunk(spec.weight.data, spec.weight.type, column, count, wide, w);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      v[i] *= inverse;
      if (spec.round_before_weight) v[i] = rounded<T>(v[i]);
      if (spec.weight.data) v[i] *= w[i];
      v[i] = rounded<T>(v[i]);
    }
  }
  if (spec.pairs > 0) {
    float* mine = values + threadIdx.x * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) mine[i] = v[i];
    __syncwarp();
    const float* whole = values + (threadIdx.x - lane) * kChunk;
    const int pairs = static_cast<int>(spec.pairs);
    if (count > 0 && column < 2 * pairs) {
      float c[kChunk], s[kChunk];
      const std::int64_t cos_row = row * spec.cos_stride, sin_row = row * spec.sin_stride;
      if (wide_rope) {  // then a chunk lies on one side of the pairs
        const int angle = column < pairs ? column : column - pairs;
        load_chunk(spec.cos, spec.table_type, cos_row + angle, kChunk, true, c);
        load_chunk(spec.sin, spec.table_type, sin_row + angle, kChunk, true, s);
      }
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        const int j = column + i;
        if (j >= 2 * pairs) break;
        const bool low = j < pairs;
        if (!wide_rope) {
          c[i] = load_one(spec.cos, spec.table_type, cos_row + (low ? j : j - pairs));
          s[i] = load_one(spec.sin, spec.table_type, sin_row + (low ? j : j - pairs));
        }
        float along = v[i] * c[i];
        float across = whole[low ? j + pairs : j - pairs] * s[i];
        if (spec.round_products) {
          along = rounded<T>(along);
          across = rounded<T>(across);
        }
        v[i] = low ? along - across : along + across;
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
