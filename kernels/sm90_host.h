// What launchers of Hopper kernels (sm90.cuh) share: the question whether they can run here, descriptions of tensors
// for bulk copies, by the driver's encoder, which is looked up at run time so that the program starts without a driver,
// and the launch of clusters that stay and walk from unit to unit.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace h3::kernels {

// A 16-bit tensor of four axes, fastest first; strides of the other three in bytes. A box of 64 elements of the first
// axis lands as swizzled 128-byte rows; what lies behind the end arrives as zeros. False where the driver refuses.
bool encode_tensor_map(CUtensorMap& map, CUtensorMapDataType type, const void* data,
                       const std::array<std::int64_t, 4>& sizes, const std::array<std::int64_t, 3>& strides,
                       const std::array<int, 4>& box);
// The number of multiprocessors, where this device and build can run a kernel that was compiled for sm_90a alone;
// cudaErrorNotSupported elsewhere.
cudaError_t find_sm90_processors(const void* kernel, int& processors);

// A persistent kernel in clusters of `blocks` blocks: no more clusters than units of work or than processors hold.
struct ClusterLaunch {
  int blocks, threads, shared_bytes;
  std::int64_t units;
  int processors;  // as found above
};

template <typename... Parameters>
cudaError_t launch_clusters(const ClusterLaunch& launch, cudaStream_t stream, void (*kernel)(Parameters...),
                            const Parameters&... arguments) {
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.shared_bytes))
    return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(launch.blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim =
      static_cast<unsigned>(launch.blocks * std::min<std::int64_t>(launch.units, launch.processors / launch.blocks));
  config.blockDim = static_cast<unsigned>(launch.threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(launch.shared_bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

constexpr int divide_up(std::int64_t a, int b) {
  return static_cast<int>((a + b - 1) / b);
}

}  // namespace h3::kernels
