// Calls of the CUDA driver itself, found through the runtime, so that the program starts where no driver is installed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/error.h"

namespace h3 {

template <typename Function>
Function driver_entry(const char* name) {
  constexpr unsigned kCuda12 = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &found, kCuda12, cudaEnableDefault, &result);
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess)
    throw RunError(fmt::format("the CUDA driver has no {}", name));
  return reinterpret_cast<Function>(found);
}

inline void check_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  static const auto name_of_error = driver_entry<decltype(&cuGetErrorName)>("cuGetErrorName");
  const char* text = nullptr;
  if (name_of_error(result, &text) != CUDA_SUCCESS) text = "an unknown error";
  throw RunError(fmt::format("{} failed: {}", call, text));
}

}  // namespace h3

#define H3_DRIVER_ENTRY(name) ::h3::driver_entry<decltype(&(name))>(#name)
