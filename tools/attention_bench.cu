// The Hopper attention kernel as a shared library with a C name, for attention_bench.py.
#include "kernels/attention_sm90.h"

extern "C" int h3_attention_sm90_call(const h3::AttentionSm90Args* args, void* stream) {
  return h3::h3_attention_sm90(*args, static_cast<cudaStream_t>(stream));
}

extern "C" int h3_attention_sm90_resources(int* registers, int* spilled_bytes) {
  cudaFuncAttributes attributes{};
  const cudaError_t error = h3::h3_attention_sm90_attributes(&attributes);
  *registers = attributes.numRegs;
  *spilled_bytes = static_cast<int>(attributes.localSizeBytes);
  return error;
}
