// Which devices these kernels were compiled for.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// Success where the current device can run the kernels of this build; cudaErrorNoKernelImageForDevice where not.
cudaError_t covers_device();

// The architectures of this build, as in "80;90a".
const char* architectures();

}  // namespace h3::kernels
