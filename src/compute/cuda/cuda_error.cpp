#include "compute/cuda/cuda_error.h"

#include "base/error.h"

namespace h3 {

void check_call(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // what is not sticky is reported once
  throw RunError(fmt::format("CUDA: {} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check_call(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RunError(fmt::format("cuBLASLt: {} failed: {}", call, cublasLtGetStatusName(status)));
}

void check_call(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw RunError(fmt::format("cuDNN: {} failed: {}", call, cudnnGetErrorString(status)));
}

}  // namespace h3
