// What launchers of Hopper kernels (sm90.cuh) share: the question whether they can run here, and descriptions of
// tensors for bulk copies, by the driver's encoder, which is looked up at run time so that the program starts without a
// driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

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

}  // namespace h3::kernels
