#include "kernels/audio.h"

#include "kernels/launch.h"

namespace h3::kernels {

namespace {

constexpr int kTile = 1024;  // samples a block writes
constexpr int kHalf = kSnakeTaps / 2;

// A tile of y needs the snaked signal at rate 2 from 2 * begin - 5 on, and that needs x from begin - 5 on.
constexpr int kFineBefore = kHalf - 1, kFine = 2 * kTile + kSnakeTaps - 2;
constexpr int kCoarseBefore = kHalf - 1, kCoarse = kTile + kSnakeTaps;

__device__ std::int64_t clamped(std::int64_t i, std::int64_t n) {
  return i < 0 ? 0 : i < n ? i : n - 1;
}

__global__ void __launch_bounds__(kBlock)
    snake_beta_kernel(Signal x, const float* alpha, const float* beta, const float* filter, Signal y) {
  __shared__ float coarse[kCoarse], fine[kFine], f[kSnakeTaps];
  const std::int64_t channel = blockIdx.y, begin = static_cast<std::int64_t>(blockIdx.x) * kTile, length = x.length;
  const float* in = x.data + blockIdx.z * x.batch_stride + channel * x.channel_stride;
  float* out = y.data + blockIdx.z * y.batch_stride + channel * y.channel_stride;
  if (threadIdx.x < kSnakeTaps) f[threadIdx.x] = filter[threadIdx.x];
  for (int i = static_cast<int>(threadIdx.x); i < kCoarse; i += kBlock)
    coarse[i] = in[clamped(begin - kCoarseBefore + i, length)];
  __syncthreads();

  const float frequency = expf(alpha[channel]);
  const float weight = 1.0f / (expf(beta[channel]) + 1e-9f);
  for (int i = static_cast<int>(threadIdx.x); i < kFine; i += kBlock) {
    const std::int64_t j = 2 * begin - kFineBefore + i;
    if (j < 0 || j >= 2 * length) continue;  // read by nobody: the taps below clamp
    const int phase = static_cast<int>((j + 15) % 2);
    const std::int64_t newest = (j + 5) / 2;
    float sum = 0.0f;
#pragma unroll
    for (int q = 0; q < kHalf; ++q)
      sum += f[phase + 2 * q] * coarse[clamped(newest - q, length) - (begin - kCoarseBefore)];
    const float v = 2.0f * sum;
    const float s = sinf(frequency * v);
    fine[i] = v + weight * (s * s);
  }
  __syncthreads();

  for (int i = static_cast<int>(threadIdx.x); i < kTile && begin + i < length; i += kBlock) {
    float sum = 0.0f;
#pragma unroll
    for (int q = 0; q < kSnakeTaps; ++q)
      sum += f[q] * fine[clamped(2 * (begin + i) + q - 5, 2 * length) - (2 * begin - kFineBefore)];
    out[begin + i] = sum;
  }
}

struct Snake {
  Signal x, y;
  const float* alpha;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / x.length, sample = i - row * x.length;
    const std::int64_t item = row / x.channels, channel = row - item * x.channels;
    const float v = x.data[item * x.batch_stride + channel * x.channel_stride + sample];
    const float s = sinf(alpha[channel] * v);
    y.data[item * y.batch_stride + channel * y.channel_stride + sample] = v + 1.0f / (alpha[channel] + 1e-9f) * (s * s);
  }
};

}  // namespace

cudaError_t snake_beta(const Signal& x, const float* alpha, const float* beta, const float* filter, const Signal& y,
                       cudaStream_t stream) {
  if (x.batch == 0 || x.channels == 0 || x.length == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>((x.length + kTile - 1) / kTile), static_cast<unsigned>(x.channels),
                  static_cast<unsigned>(x.batch));
  snake_beta_kernel<<<grid, kBlock, 0, stream>>>(x, alpha, beta, filter, y);
  return cudaGetLastError();
}

cudaError_t snake(const Signal& x, const float* alpha, const Signal& y, cudaStream_t stream) {
  return for_indices(x.batch * x.channels * x.length, Snake{x, y, alpha}, stream);
}

}  // namespace h3::kernels
