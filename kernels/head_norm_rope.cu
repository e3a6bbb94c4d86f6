#include "kernels/launch.h"
#include "kernels/norms.h"
#include "kernels/row_norm.cuh"

namespace h3::kernels {

namespace {

constexpr int N = 8;           // channels of a thread
constexpr int kHeadsEach = 4;  // heads of a row that a thread takes, with the same angles and weights

template <typename T>
__device__ float rotate(float own, float other, float cosine, float sine, bool round_products) {
  float along = own * cosine, across = other * sine;
  if (round_products) {
    along = rounded<T>(along);
    across = rounded<T>(across);
  }
  return along + across;
}

// What a thread needs for its channels of any head of its row. Sines of a pair's first channel have their sign turned.
struct Channels {
  float weight[N], cosine[N], sine[N];
};

// The general case, where the two channels of a pair lie anywhere: angles one by one.
__device__ void load_angles(const HeadNormRope& spec, std::int64_t row, int column, Channels& c) {
  const int pairs = static_cast<int>(spec.pairs);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int j = column + i;
    if (j >= 2 * pairs) break;
    const int angle = j < pairs ? j : j - pairs;
    c.cosine[i] = load_one(spec.cos, spec.table_type, row * spec.cos_stride + angle);
    const float sine = load_one(spec.sin, spec.table_type, row * spec.sin_stride + angle);
    c.sine[i] = j < pairs ? -sine : sine;
  }
}

template <typename T>
__device__ void normalize(float (&v)[N], const HeadNormRope& spec, std::int64_t d, int lanes, const Channels& c) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) sum = __fmaf_rn(v[i], v[i], sum);
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const float inverse = __frsqrt_rn(sum / static_cast<float>(d) + spec.eps);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    v[i] *= inverse;
    if (spec.round_before_weight) v[i] = rounded<T>(v[i]);
    if (spec.weight.data) v[i] *= c.weight[i];
  }
  widen(narrow<T>(v), v);
}

// `lanes` threads of a warp hold one head, a chunk each; the channels of a pair meet in shared memory. kWide: heads are
// aligned and consist of whole chunks, and no chunk holds both sides of the pairs.
template <typename T, bool kWide>
__global__ void __launch_bounds__(kBlock, kWide && sizeof(T) == 2 ? 4 : 2)
    head_norm_rope_kernel(Heads x, HeadNormRope spec, int lanes, unsigned groups) {
  __shared__ __align__(16) float values[kBlock * N];
  const int lane = static_cast<int>(threadIdx.x) % lanes, column = lane * N;
  const unsigned item = blockIdx.x * (kBlock / lanes) + threadIdx.x / lanes;
  const std::int64_t row = item / groups;
  const int first = static_cast<int>(item - static_cast<unsigned>(row) * groups) * kHeadsEach;
  const bool real = row < x.rows && column < x.d;
  const int heads = real ? static_cast<int>(x.heads) - first : 0, count = !real   ? 0
                                                                          : kWide ? N
                                                                                  : static_cast<int>(x.d) - column;
  const int pairs = static_cast<int>(spec.pairs), angle = column < pairs ? column : column - pairs;
  const bool rotated = real && column < 2 * pairs;
  T* at = static_cast<T*>(x.data) + row * x.row_stride + first * x.head_stride + column;

  // All loads first, so that they are on their way together.
  Pack<T, N> chunks[kHeadsEach];
#pragma unroll
  for (int h = 0; h < kHeadsEach; ++h) chunks[h] = load_pack<N>(at + h * x.head_stride, h < heads ? count : 0, kWide);
  const Operand<N> weight(spec.weight.data, spec.weight.type, column, spec.weight.data ? count : 0, kWide);
  const int angles = kWide && rotated ? N : 0;
  const Operand<N> cosine(spec.cos, spec.table_type, row * spec.cos_stride + angle, angles, true);
  const Operand<N> sine(spec.sin, spec.table_type, row * spec.sin_stride + angle, angles, true);
  Channels c;
  weight.widen_to(c.weight);
  cosine.widen_to(c.cosine);
  sine.widen_to(c.sine);
  if (kWide && column < pairs) {
#pragma unroll
    for (int i = 0; i < N; ++i) c.sine[i] = -c.sine[i];
  }
  if (!kWide && rotated) load_angles(spec, row, column, c);

  float* mine = values + threadIdx.x * N;
  const float* whole = values + (threadIdx.x - lane) * N;
#pragma unroll
  for (int h = 0; h < kHeadsEach; ++h) {
    float v[N];
    widen(chunks[h], v);
    if (spec.norm) normalize<T>(v, spec, x.d, lanes, c);
    if (pairs > 0) {
      __syncwarp();  // the head before is read
#pragma unroll
      for (int i = 0; i < N; i += 4)
        *reinterpret_cast<float4*>(mine + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
      __syncwarp();
      if (kWide && rotated) {
        const float* partner = whole + (column < pairs ? column + pairs : column - pairs);
        float other[N];
#pragma unroll
        for (int i = 0; i < N; i += 4)
          *reinterpret_cast<float4*>(other + i) = *reinterpret_cast<const float4*>(partner + i);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = rotate<T>(v[i], other[i], c.cosine[i], c.sine[i], spec.round_products);
      } else if (rotated) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const int j = column + i;
          if (j >= 2 * pairs) break;
          const float other = whole[j < pairs ? j + pairs : j - pairs];
          v[i] = rotate<T>(v[i], other, c.cosine[i], c.sine[i], spec.round_products);
        }
      }
    }
    if (h < heads) store_chunk(at + h * x.head_stride, count, kWide, v);
  }
}

}  // namespace

cudaError_t head_norm_rope(const Heads& x, const HeadNormRope& spec, cudaStream_t stream) {
  if (x.rows == 0 || x.heads == 0 || x.d == 0) return cudaSuccess;
  const std::int64_t groups = (x.heads + kHeadsEach - 1) / kHeadsEach;
  if (x.d > kMaxHeadSize || x.rows * groups > 0x7fffffff || 2 * spec.pairs > x.d) return cudaErrorInvalidValue;
  int lanes = 1;
  while (lanes * N < x.d) lanes *= 2;
  const std::int64_t bytes = bytes_of(x.type), table_bytes = bytes_of(spec.table_type);
  const bool fast = x.d % N == 0 && spec.pairs % N == 0 && aligned16(x.data) && x.row_stride * bytes % 16 == 0 &&
                    x.head_stride * bytes % 16 == 0 && wide(spec.weight) && aligned16(spec.cos) &&
                    aligned16(spec.sin) && spec.cos_stride * table_bytes % 16 == 0 &&
                    spec.sin_stride * table_bytes % 16 == 0;
  const std::int64_t per_block = kBlock / static_cast<unsigned>(lanes);
  const auto blocks = static_cast<unsigned>((x.rows * groups + per_block - 1) / per_block);
  return with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = fast ? head_norm_rope_kernel<T, true> : head_norm_rope_kernel<T, false>;
    kernel<<<blocks, kBlock, 0, stream>>>(x, spec, lanes, static_cast<unsigned>(groups));
    return cudaGetLastError();
  });
}

}  // namespace h3::kernels
