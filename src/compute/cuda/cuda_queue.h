// A queue on a GPU: a stream with library handles and a workspace of fixed size of its own, so that queues never share
// scratch memory. Handles and workspace are made at their first use; a queue that only copies needs neither.
#pragma once

#include "compute/cuda/cuda_error.h"
#include "compute/machine.h"

namespace h3 {

class CudaQueue : public Queue {
 public:
  explicit CudaQueue(int device);
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void wait() override;
  void wait_for(Queue& other) override;

  cudaStream_t stream() const { return stream_; }
  cublasLtHandle_t blas();
  cudnnHandle_t dnn();
  // kWorkspace bytes that library calls may use, and kScratch bytes for the operators' own passing needs. Every call
  // uses both from the start.
  void* workspace();
  void* scratch() { return static_cast<char*>(workspace()) + kWorkspace; }
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  static constexpr std::size_t kScratch = std::size_t{16} << 20;

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t mark_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  void* workspace_ = nullptr;
};

// The CUDA side of a queue that an operator was given.
CudaQueue& cuda_queue(Queue& queue);

}  // namespace h3
