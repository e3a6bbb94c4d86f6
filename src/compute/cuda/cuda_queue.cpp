#include "compute/cuda/cuda_queue.h"

#include "base/error.h"

namespace h3 {

CudaQueue::CudaQueue(int device) : device_(device) {
  H3_CUDA(cudaSetDevice(device_));
  H3_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  H3_CUDA(cudaEventCreateWithFlags(&mark_, cudaEventDisableTiming));
}

CudaQueue::~CudaQueue() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  if (dnn_) cudnnDestroy(dnn_);
  if (blas_) cublasLtDestroy(blas_);
  if (workspace_) cudaFree(workspace_);
  cudaEventDestroy(mark_);
  cudaStreamDestroy(stream_);
}

void CudaQueue::wait() {
  H3_CUDA(cudaSetDevice(device_));  // helper threads wait too
  H3_CUDA(cudaStreamSynchronize(stream_));
}

void CudaQueue::wait_for(Queue& other) {
  CudaQueue& earlier = cuda_queue(other);
  H3_CUDA(cudaEventRecord(earlier.mark_, earlier.stream_));
  H3_CUDA(cudaStreamWaitEvent(stream_, earlier.mark_, 0));
}

cublasLtHandle_t CudaQueue::blas() {
  if (!blas_) H3_CUDA(cublasLtCreate(&blas_));
  return blas_;
}

cudnnHandle_t CudaQueue::dnn() {
  if (!dnn_) {
    H3_CUDA(cudnnCreate(&dnn_));
    H3_CUDA(cudnnSetStream(dnn_, stream_));
  }
  return dnn_;
}

void* CudaQueue::workspace() {
  if (!workspace_) H3_CUDA(cudaMalloc(&workspace_, kWorkspace + kScratch));
  return workspace_;
}

CudaQueue& cuda_queue(Queue& queue) {
  auto* cuda = dynamic_cast<CudaQueue*>(&queue);
  H3_CHECK(cuda != nullptr, "a queue of another machine was given to a GPU");
  return *cuda;
}

}  // namespace h3
