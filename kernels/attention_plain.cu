#include "kernels/attention_plain.h"

#include "kernels/chunk.cuh"
#include "kernels/launch.h"

namespace h3::kernels {

namespace {

constexpr int kSide = 16;  // threads of a block: 16 x 16

// kHead is the head size rounded up; kTile query rows and keys a tile.
template <int kHead, int kTile>
struct Tiles {
  static constexpr int kPad = 4;  // keeps 16-byte alignment and spreads banks
  float query[kHead][kTile + kPad];
  // Keys of a tile, then its values in the same place.
  union {
    float key[kHead][kTile + kPad];
    float value[kTile][kHead];
  };
  float weight[kTile][kTile + kPad];  // [key][query]
};

// rows x d elements from row `first` on as [d][rows], zeros outside.
template <typename T, int kHead, int kTile>
__device__ void load_transposed(const Heads& t, std::int64_t head, std::int64_t first, float (&to)[kHead][kTile + 4]) {
  for (int i = static_cast<int>(threadIdx.x); i < kHead * kTile; i += kSide * kSide) {
    const int c = i % kHead, r = i / kHead;
    const bool real = first + r < t.rows && c < t.d;
    to[c][r] =
        real ? to_float(static_cast<const T*>(t.data)[(first + r) * t.row_stride + head * t.head_stride + c]) : 0.0f;
  }
}

template <typename T, int kHead, int kTile>
__device__ void load_values(const Heads& t, std::int64_t head, std::int64_t first, float (&to)[kTile][kHead]) {
  for (int i = static_cast<int>(threadIdx.x); i < kHead * kTile; i += kSide * kSide) {
    const int c = i % kHead, r = i / kHead;
    const bool real = first + r < t.rows && c < t.d;
    to[r][c] =
        real ? to_float(static_cast<const T*>(t.data)[(first + r) * t.row_stride + head * t.head_stride + c]) : 0.0f;
  }
}

// Two or four neighbours in one access.
__device__ inline void read(const float* p, float (&v)[2]) {
  *reinterpret_cast<float2*>(v) = *reinterpret_cast<const float2*>(p);
}
__device__ inline void read(const float* p, float (&v)[4]) {
  *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(p);
}

// Over the 16 threads that share rows.
__device__ inline float side_sum(float v) {
#pragma unroll
  for (int step = kSide / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}
__device__ inline float side_max(float v) {
#pragma unroll
  for (int step = kSide / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

template <typename T, int kHead, int kTile>
__global__ void __launch_bounds__(kSide* kSide)
    attention_kernel(Heads query, Heads key, Heads value, Heads o, AttentionMask mask) {
  constexpr int kEach = kTile / kSide;      // rows, and keys, of a thread
  constexpr int kChannels = kHead / kSide;  // output channels of a thread
  extern __shared__ __align__(16) unsigned char memory[];
  auto& tiles = *reinterpret_cast<Tiles<kHead, kTile>*>(memory);
  const int across = static_cast<int>(threadIdx.x) % kSide, down = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t head = blockIdx.y, key_head = head / (query.heads / key.heads);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile;

  load_transposed<T, kHead, kTile>(query, head, first, tiles.query);
  float largest[kEach], total[kEach], sum[kEach][kChannels];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    largest[i] = -INFINITY;
    total[i] = 0.0f;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) sum[i][c] = 0.0f;
  }

  // Keys that the row `r` of this tile sees.
  const auto visible = [&](int r) {
    const std::int64_t bound = first + r + mask.first_query_row + 1;
    return mask.causal && bound < key.rows ? bound : key.rows;
  };
  const std::int64_t reach = visible(kTile - 1);
  for (std::int64_t begin = 0; begin < reach; begin += kTile) {
    __syncthreads();  // the values before are used up
    load_transposed<T, kHead, kTile>(key, key_head, begin, tiles.key);
    __syncthreads();
    float logit[kEach][kEach] = {};
    for (int c = 0; c < kHead; ++c) {
      float q[kEach], k[kEach];
      read(&tiles.query[c][down * kEach], q);
      read(&tiles.key[c][across * kEach], k);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) logit[i][j] = __fmaf_rn(q[i], k[j], logit[i][j]);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t bound = visible(down * kEach + i);
      float top = -INFINITY;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        logit[i][j] = begin + across * kEach + j < bound ? logit[i][j] * mask.scale : -INFINITY;
        top = fmaxf(top, logit[i][j]);
      }
      top = fmaxf(largest[i], side_max(top));
      const float fade = expf(largest[i] - top);
      float row = 0.0f;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        logit[i][j] = expf(logit[i][j] - top);
        row += logit[i][j];
      }
      largest[i] = top;
      total[i] = total[i] * fade + side_sum(row);
#pragma unroll
      for (int c = 0; c < kChannels; ++c) sum[i][c] *= fade;
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j)
#pragma unroll
      for (int i = 0; i < kEach; ++i) tiles.weight[across * kEach + j][down * kEach + i] = logit[i][j];
    __syncthreads();  // keys are used up, weights are there
    load_values<T, kHead, kTile>(value, key_head, begin, tiles.value);
    __syncthreads();
    const int count = static_cast<int>(reach - begin < kTile ? reach - begin : kTile);
    for (int j = 0; j < count; ++j) {
      float w[kEach];
      read(&tiles.weight[j][down * kEach], w);
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const float v = tiles.value[j][c * kSide + across];
#pragma unroll
        for (int i = 0; i < kEach; ++i) sum[i][c] = __fmaf_rn(w[i], v, sum[i][c]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t row = first + down * kEach + i;
    if (row >= o.rows) continue;
    T* out = static_cast<T*>(o.data) + row * o.row_stride + head * o.head_stride;
#pragma unroll
    for (int c = 0; c < kChannels; ++c)
      if (c * kSide + across < o.d) out[c * kSide + across] = from_float<T>(sum[i][c] / total[i]);
  }
}

template <typename T, int kHead, int kTile>
cudaError_t launch(const Heads& query, const Heads& key, const Heads& value, const Heads& o, const AttentionMask& mask,
                   cudaStream_t stream) {
  constexpr int kBytes = sizeof(Tiles<kHead, kTile>);
  const auto kernel = attention_kernel<T, kHead, kTile>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>((query.rows + kTile - 1) / kTile), static_cast<unsigned>(query.heads));
  kernel<<<grid, kSide * kSide, kBytes, stream>>>(query, key, value, o, mask);
  return cudaGetLastError();
}

}  // namespace

cudaError_t attention_plain(const Heads& query, const Heads& key, const Heads& value, const Heads& o,
                            const AttentionMask& mask, cudaStream_t stream) {
  if (query.rows == 0 || query.heads == 0) return cudaSuccess;
  if (query.d > 256 || key.rows == 0 || key.heads == 0 || query.heads % key.heads != 0) return cudaErrorInvalidValue;
  return with_type(query.type, [&](auto zero) {
    using T = decltype(zero);
    if (query.d <= 32) return launch<T, 32, 64>(query, key, value, o, mask, stream);
    if (query.d <= 64) return launch<T, 64, 64>(query, key, value, o, mask, stream);
    if (query.d <= 128) return launch<T, 128, 64>(query, key, value, o, mask, stream);
    return launch<T, 256, 32>(query, key, value, o, mask, stream);
  });
}

}  // namespace h3::kernels
