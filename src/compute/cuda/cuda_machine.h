// One GPU as a machine. The header names no CUDA type, so that rooms above include it without the toolkit; it may be
// called only in builds with H3RENDER_WITH_CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compute/machine.h"

namespace h3 {

// Who computes attention. `automatic` follows the table in compute/cuda/attention.cpp, by compute capability, element
// type and head size; `cudnn` takes cuDNN wherever it covers the call, `own` the kernels of this program alone.
enum class AttentionEngine : std::uint8_t { automatic, cudnn, own };

struct CudaOptions {
  AttentionEngine attention = AttentionEngine::automatic;
};

// What the compiler gave our own attention kernel (kernels/attention_sm90.h). Throws RunError where the card cannot run
// it.
struct KernelResources {
  int registers = 0;      // a thread at launch
  int spilled_bytes = 0;  // a thread, in local memory
};
KernelResources own_attention_resources();

// How many GPUs this process sees; 0 without a driver.
int cuda_device_count();
// The PCI address of a GPU, "0000:1b:00.0", the same for all processes of a node.
std::string cuda_bus_id(int device);

// Throws UserError where the GPU does not exist or its compute capability is not covered by this build; names both.
std::unique_ptr<Machine> make_cuda_machine(int device, const CudaOptions& options = {});

}  // namespace h3
