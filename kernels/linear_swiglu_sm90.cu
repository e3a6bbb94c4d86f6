#include "kernels/linear_swiglu_sm90.h"

#include <cuda_runtime.h>

#include "kernels/launch.h"
#include "kernels/linear_swiglu_sm90_block.cuh"
#include "kernels/sm90_host.h"

namespace h3::kernels {

using namespace swiglu_sm90;

namespace {

__global__ void __launch_bounds__(kThreads, 1)
    linear_swiglu_kernel(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap weight,
                         const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::uint8_t start[];
  const Shared shared(start);
  const std::uint32_t block = block_in_cluster();
  if (threadIdx.x == 0) shared.init_barriers();
  cluster_sync();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (group == 0) {
    give_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce(x, weight, problem, shared, block);
  } else {
    take_registers<kConsumerRegisters>();
    Consumer consumer{problem, shared, block, group - 1, threadIdx.x % 32 == 0, {}, {}, {}};
    consumer.run();
  }
  cluster_sync();  // no block leaves while the other may still write or arrive here
#else
  __trap();
#endif
}

// ---- host

constexpr int kMostRows = 1 << 30;

bool well_formed(const Matrix& x, const Matrix& weight, const Vector& bias, const Matrix& y) {
  for (const Matrix* m : {&x, &weight, &y})
    if (m->type != Element::f16 || !wide(*m) || m->rows > kMostRows) return false;
  return linear_swiglu_sm90_takes(x.columns, y.columns) && weight.columns == x.columns &&
         weight.rows == 2 * y.columns && x.rows == y.rows && bias.type == Element::f16 && bias.data && wide(bias);
}

bool encode(CUtensorMap& map, const Matrix& m, int box_rows) {
  const std::int64_t stride = m.rows > 1 ? m.stride : m.columns;
  return encode_tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, m.data, {m.columns, m.rows, 1, 1},
                           {2 * stride, 2 * stride, 2 * stride}, {kDepth, box_rows, 1, 1});
}

}  // namespace

bool linear_swiglu_sm90_takes(std::int64_t k, std::int64_t outputs) {
  return k > 0 && k % kDepth == 0 && outputs > 0 && outputs % kTileOutputs == 0;
}

cudaError_t linear_swiglu_sm90(const Matrix& x, const Matrix& weight, const Vector& bias, const Matrix& y,
                               cudaStream_t stream) {
  if (!well_formed(x, weight, bias, y)) return cudaErrorInvalidValue;
  if (x.rows == 0) return cudaSuccess;
  int processors = 0;
  if (const cudaError_t error = find_sm90_processors(reinterpret_cast<const void*>(linear_swiglu_kernel), processors))
    return error;
  CUtensorMap x_map, weight_map;
  if (!encode(x_map, x, kTileRows) || !encode(weight_map, weight, kTileOutputs)) return cudaErrorInvalidValue;
  const Problem problem{static_cast<const f16*>(bias.data),
                        static_cast<f16*>(y.data),
                        y.stride,
                        static_cast<int>(y.rows),
                        static_cast<int>(y.columns),
                        static_cast<int>(x.columns / kDepth),
                        divide_up(y.rows, kClusterRows),
                        static_cast<int>(y.columns / kTileOutputs)};
  return launch_clusters({kBlocks, kThreads, kSharedBytes, problem.row_tiles * problem.column_tiles, processors},
                         stream, linear_swiglu_kernel, x_map, weight_map, problem);
}

}  // namespace h3::kernels
