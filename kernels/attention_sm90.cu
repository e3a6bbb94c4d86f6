#include "kernels/attention_sm90.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/attention_sm90_block.cuh"

namespace h3 {

using namespace kernels::attention_sm90;

namespace {

// Of each cluster both blocks run the same units, so that every slot that one fills the other reads.
__global__ void __launch_bounds__(kThreads, 1)
    attention_kernel(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                     const __grid_constant__ CUtensorMap v, const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::uint8_t start[];
  const Shared shared(start);
  const std::uint32_t block = block_in_cluster();
  if (threadIdx.x == 0) shared.init_barriers();
  cluster_sync();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (group == 0) {
    give_registers<kProducerRegisters>();
    if (threadIdx.x == 0) {
      Producer producer{problem, shared, block, {}};
      producer.run(q, k, v);
    }
  } else {
    take_registers<kConsumerRegisters>();
    Consumer consumer{problem, shared, block, group - 1, threadIdx.x % kWarp == 0};
    consumer.run();
  }
  cluster_sync();  // no block leaves while the other may still write or arrive here
#else
  __trap();
#endif
}

// ---- host

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

// [heads, 2 slabs, rows, 64]: a box of `rows` rows and `slabs` slabs lands as slabs of swizzled 128-byte rows; rows
// behind the end arrive as zeros.
bool encode(CUtensorMap& map, const void* data, int rows, int heads, const AttentionSm90Strides& stride, int box_rows,
            int box_slabs) {
  const cuuint64_t row_bytes = rows > 1 ? 2 * stride.row : 2 * kHeadSize;
  const cuuint64_t head_bytes = heads > 1 ? 2 * stride.head : 2 * kHeadSize;
  const cuuint64_t sizes[] = {kSlab, static_cast<cuuint64_t>(rows), kHeadSize / kSlab, static_cast<cuuint64_t>(heads)};
  const cuuint64_t strides[] = {row_bytes, kRowBytes, head_bytes};
  const cuuint32_t box[] = {kSlab, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_slabs), 1};
  const cuuint32_t element_strides[] = {1, 1, 1, 1};
  return encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(data), sizes, strides, box,
                        element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

std::int64_t units_of(const AttentionSm90Args& args) {
  return std::int64_t{divide_up(args.rows_q, kBlocks * kTileRows)} * args.heads;
}

bool usable(const void* data, int rows, int heads, const AttentionSm90Strides& stride) {
  const auto fits = [](int size, std::int64_t s) {
    return size <= 1 || (s > 0 && s % 8 == 0 && s < std::int64_t{1} << 39);
  };
  return data != nullptr && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && fits(rows, stride.row) &&
         fits(heads, stride.head);
}

bool well_formed(const AttentionSm90Args& args) {
  if (args.rows_q < 0 || args.rows_q > kMostRows || args.rows_k < 1 || args.rows_k > kMostRows || args.heads < 0) {
    return false;
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale)) return false;
  if (args.rows_q == 0 || args.heads == 0) return true;
  return usable(args.q, args.rows_q, args.heads, args.q_stride) &&
         usable(args.k, args.rows_k, args.heads, args.k_stride) &&
         usable(args.v, args.rows_k, args.heads, args.v_stride) &&
         usable(args.o, args.rows_q, args.heads, args.o_stride) && units_of(args) <= INT32_MAX / 2;
}

// The number of multiprocessors, where this device and build can run the kernel.
cudaError_t find_processors(int& processors) {
  int device = 0, major = 0, minor = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  for (const auto& [value, attribute] :
       {std::pair{&major, cudaDevAttrComputeCapabilityMajor}, std::pair{&minor, cudaDevAttrComputeCapabilityMinor},
        std::pair{&processors, cudaDevAttrMultiProcessorCount}}) {
    if (const cudaError_t error = cudaDeviceGetAttribute(value, attribute, device)) return error;
  }
  if (major != 9 || minor != 0 || encode_tiled() == nullptr) return cudaErrorNotSupported;
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, attention_kernel)) return error;
  return attributes.ptxVersion == 90 ? cudaSuccess : cudaErrorNotSupported;
}

}  // namespace

cudaError_t h3_attention_sm90_attributes(cudaFuncAttributes* attributes) {
  return cudaFuncGetAttributes(attributes, attention_kernel);
}

cudaError_t h3_attention_sm90(const AttentionSm90Args& args, cudaStream_t stream) {
  if (!well_formed(args)) return cudaErrorInvalidValue;
  if (args.rows_q == 0 || args.heads == 0) return cudaSuccess;
  int processors = 0;
  if (const cudaError_t error = find_processors(processors)) return error;
  CUtensorMap q, k, v;
  if (!encode(q, args.q, args.rows_q, args.heads, args.q_stride, kTileRows, kHeadSize / kSlab) ||
      !encode(k, args.k, args.rows_k, args.heads, args.k_stride, kTileKeys, 1) ||
      !encode(v, args.v, args.rows_k, args.heads, args.v_stride, kTileKeys, 1)) {
    return cudaErrorInvalidValue;
  }
  Problem problem{};
  problem.o = static_cast<__nv_bfloat16*>(args.o);
  problem.row_stride = args.o_stride.row;
  problem.head_stride = args.o_stride.head;
  problem.rows_q = args.rows_q;
  problem.rows_k = args.rows_k;
  problem.heads = args.heads;
  problem.key_tiles = divide_up(args.rows_k, kTileKeys);
  problem.units_per_head = divide_up(args.rows_q, kBlocks * kTileRows);
  problem.scale_log2 = args.scale * 1.44269504088896341f;
  if (const cudaError_t error =
          cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes)) {
    return error;
  }
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kBlocks, 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>(kBlocks * std::min<std::int64_t>(units_of(args), processors / kBlocks));
  launch.blockDim = kThreads;
  launch.dynamicSmemBytes = kSharedBytes;
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  return cudaLaunchKernelEx(&launch, attention_kernel, q, k, v, problem);
}

}  // namespace h3
