#include "kernels/sm90_host.h"

#include <algorithm>
#include <utility>

namespace h3::kernels {

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

EncodeTiled encode_tiled() {
  static const EncodeTiled found = [] {
    void* p = nullptr;
    cudaDriverEntryPointQueryResult result;
    constexpr unsigned kCuda12 = 12000;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, kCuda12, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(p) : nullptr;
  }();
  return found;
}

}  // namespace

cudaError_t find_sm90_processors(const void* kernel, int& processors) {
  int device = 0, major = 0, minor = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  for (const auto& [value, attribute] :
       {std::pair{&major, cudaDevAttrComputeCapabilityMajor}, std::pair{&minor, cudaDevAttrComputeCapabilityMinor},
        std::pair{&processors, cudaDevAttrMultiProcessorCount}}) {
    if (const cudaError_t error = cudaDeviceGetAttribute(value, attribute, device)) return error;
  }
  if (major != 9 || minor != 0 || encode_tiled() == nullptr) return cudaErrorNotSupported;
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel)) return error;
  constexpr int kPtxOfSm90 = 90;
  return attributes.ptxVersion == kPtxOfSm90 ? cudaSuccess : cudaErrorNotSupported;
}

bool encode_tensor_map(CUtensorMap& map, CUtensorMapDataType type, const void* data,
                       const std::array<std::int64_t, 4>& sizes, const std::array<std::int64_t, 3>& strides,
                       const std::array<int, 4>& box) {
  if (encode_tiled() == nullptr) return false;
  std::array<cuuint64_t, 4> wide_sizes;
  std::array<cuuint64_t, 3> wide_strides;
  std::array<cuuint32_t, 4> wide_box;
  std::copy(sizes.begin(), sizes.end(), wide_sizes.begin());
  std::copy(strides.begin(), strides.end(), wide_strides.begin());
  std::copy(box.begin(), box.end(), wide_box.begin());
  const cuuint32_t element_strides[] = {1, 1, 1, 1};
  return encode_tiled()(&map, type, 4, const_cast<void*>(data), wide_sizes.data(), wide_strides.data(), wide_box.data(),
                        element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace h3::kernels
