#include "kernels/device.h"

#include <cuda_runtime.h>

namespace h3::kernels {

namespace {
__global__ void probe_kernel() {}
}  // namespace

cudaError_t covers_device() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, probe_kernel);
}

const char* architectures() {
  return H3RENDER_ARCHITECTURES;
}

}  // namespace h3::kernels
