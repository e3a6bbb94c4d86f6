// Every call into CUDA and its libraries is checked and named in the error.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace h3 {

// Throw RunError with the call and the library's own words unless the status is success.
void check_call(cudaError_t status, const char* call);
void check_call(cublasStatus_t status, const char* call);
void check_call(cudnnStatus_t status, const char* call);

}  // namespace h3

#define H3_CUDA(call) ::h3::check_call((call), #call)
