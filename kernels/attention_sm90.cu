#include "kernels/attention_sm90.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/attention_sm90_block.cuh"
#include "kernels/sm90_host.h"

namespace h3 {

using namespace kernels::attention_sm90;

namespace {

// Of each cluster both blocks run the same units, so that every slot that one fills the other reads.
template <typename Kind>
__global__ void __launch_bounds__(kThreads, 1)
    attention_kernel(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                     const __grid_constant__ CUtensorMap v, const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::uint8_t start[];
  const Shared<Kind> shared(start);
  const std::uint32_t block = block_in_cluster();
  if (threadIdx.x == 0) shared.init_barriers();
  cluster_sync();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (group == 0) {
    give_registers<kProducerRegisters>();
    if (threadIdx.x == 0) {
      Producer<Kind> producer{problem, shared, block, {}};
      producer.run(q, k, v);
    }
  } else {
    take_registers<kConsumerRegisters>();
    Consumer<Kind> consumer{problem, shared, block, group - 1, threadIdx.x % kWarp == 0};
    consumer.run();
  }
  cluster_sync();  // no block leaves while the other may still write or arrive here
#else
  __trap();
#endif
}

// ---- host

// [heads, slabs or sequences, rows, 64]: a box of `box_rows` rows and `box_slabs` slabs lands as slabs of swizzled
// 128-byte rows; rows behind the end arrive as zeros.
template <typename Kind>
bool encode(CUtensorMap& map, const void* data, int rows, const AttentionSm90Args& args, int sequences,
            const AttentionSm90Strides& stride, int box_rows, int box_slabs) {
  const bool many_rows = rows > 1 || sequences > 1;
  const std::int64_t row_bytes = many_rows ? 2 * stride.row : 2 * Kind::kHeadSize;
  const std::int64_t head_bytes = args.heads > 1 ? 2 * stride.head : 2 * Kind::kHeadSize;
  const std::int64_t middle = Kind::kBySlab ? Kind::kSlabs : sequences;
  const std::int64_t middle_bytes = Kind::kBySlab ? kRowBytes : rows * row_bytes;
  constexpr bool kIsF16 = std::is_same_v<typename Kind::Element, __half>;
  return kernels::encode_tensor_map(map, kIsF16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                    data, {kSlab, rows, middle, args.heads}, {row_bytes, middle_bytes, head_bytes},
                                    {kSlab, box_rows, box_slabs, 1});
}

std::int64_t units_of(const AttentionSm90Args& args, int sequences) {
  return std::int64_t{kernels::divide_up(args.rows_q, kBlocks * kTileRows)} * args.heads * sequences;
}

bool usable(const void* data, int rows, int heads, const AttentionSm90Strides& stride) {
  const auto fits = [](int size, std::int64_t s) {
    return size <= 1 || (s > 0 && s % 8 == 0 && s < std::int64_t{1} << 39);
  };
  return data != nullptr && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && fits(rows, stride.row) &&
         fits(heads, stride.head);
}

bool well_formed(const AttentionSm90Args& args, int sequences) {
  if (sequences < 1) return false;
  if (args.rows_q < 0 || args.rows_q > kMostRows || args.rows_k < 1 || args.rows_k > kMostRows || args.heads < 0 ||
      std::int64_t{std::max(args.rows_q, args.rows_k)} * sequences > kMostRows) {
    return false;
  }
  if (!(args.scale > 0) || !std::isfinite(args.scale)) return false;
  if (args.rows_q == 0 || args.heads == 0) return true;
  return usable(args.q, args.rows_q * sequences, args.heads, args.q_stride) &&
         usable(args.k, args.rows_k * sequences, args.heads, args.k_stride) &&
         usable(args.v, args.rows_k * sequences, args.heads, args.v_stride) &&
         usable(args.o, args.rows_q * sequences, args.heads, args.o_stride) &&
         units_of(args, sequences) <= INT32_MAX / 2;
}

template <typename Kind>
cudaError_t launch(const AttentionSm90Args& args, int sequences, bool sanitize, cudaStream_t stream) {
  if (!well_formed(args, sequences)) return cudaErrorInvalidValue;
  if (args.rows_q == 0 || args.heads == 0) return cudaSuccess;
  int processors = 0;
  if (const cudaError_t error =
          kernels::find_sm90_processors(reinterpret_cast<const void*>(attention_kernel<Kind>), processors)) {
    return error;
  }
  CUtensorMap q, k, v;
  constexpr int kKeySlabs = 1;  // of a block's part of a tile
  if (!encode<Kind>(q, args.q, args.rows_q, args, sequences, args.q_stride, kTileRows, Kind::kSlabs) ||
      !encode<Kind>(k, args.k, args.rows_k, args, sequences, args.k_stride, Kind::kBoxKeys, kKeySlabs) ||
      !encode<Kind>(v, args.v, args.rows_k, args, sequences, args.v_stride, Kind::kBoxKeys, kKeySlabs)) {
    return cudaErrorInvalidValue;
  }
  Problem problem{};
  problem.o = args.o;
  problem.row_stride = args.o_stride.row;
  problem.head_stride = args.o_stride.head;
  problem.sequence_stride = args.o_stride.row * args.rows_q;
  problem.rows_q = args.rows_q;
  problem.rows_k = args.rows_k;
  problem.heads = args.heads;
  problem.sequences = sequences;
  problem.sanitize = sanitize;
  problem.key_tiles = kernels::divide_up(args.rows_k, Kind::kTileKeys);
  problem.units_per_head = kernels::divide_up(args.rows_q, kBlocks * kTileRows);
  problem.scale_log2 = args.scale * 1.44269504088896341f;
  return kernels::launch_clusters({kBlocks, kThreads, Kind::kSharedBytes, units_of(args, sequences), processors},
                                  stream, attention_kernel<Kind>, q, k, v, problem);
}

}  // namespace

cudaError_t h3_attention_sm90_attributes(cudaFuncAttributes* attributes) {
  return cudaFuncGetAttributes(attributes, attention_kernel<Bf16Size128>);
}

cudaError_t h3_attention_sm90(const AttentionSm90Args& args, cudaStream_t stream) {
  return launch<Bf16Size128>(args, 1, false, stream);
}

cudaError_t h3_attention_sm90_f16(const AttentionSm90Args& args, int sequences, bool sanitize, cudaStream_t stream) {
  return launch<F16Size64>(args, sequences, sanitize, stream);
}

}  // namespace h3
