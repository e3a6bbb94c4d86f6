#include "parallel/transfer_clock.h"

#include "compute/cuda/cuda_error.h"

namespace h3 {

TransferClock::~TransferClock() {
  for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
  for (const Span& span : running_) {
    cudaEventDestroy(span.begin);
    cudaEventDestroy(span.end);
  }
}

cudaEvent_t TransferClock::mark(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    H3_CUDA(cudaEventCreate(&event));
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  H3_CUDA(cudaEventRecord(event, stream));
  return event;
}

void TransferClock::collect(bool wait) {
  while (!running_.empty()) {
    const Span span = running_.front();
    if (wait) H3_CUDA(cudaEventSynchronize(span.end));
    const cudaError_t status = cudaEventQuery(span.end);
    if (status == cudaErrorNotReady) return;
    H3_CUDA(status);
    float milliseconds = 0;
    H3_CUDA(cudaEventElapsedTime(&milliseconds, span.begin, span.end));
    seconds_ += static_cast<double>(milliseconds) * 1e-3;
    spare_.insert(spare_.end(), {span.begin, span.end});
    running_.pop_front();
  }
}

double TransferClock::seconds() {
  collect(true);
  return seconds_;
}

}  // namespace h3
