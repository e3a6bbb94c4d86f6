#include "compute/cuda/cuda_machine.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/error.h"
#include "compute/cuda/cuda_error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/page_lock.h"
#include "kernels/device.h"

namespace h3 {

namespace {

std::string version_text(int version, int major_unit, int minor_unit) {
  return fmt::format("{}.{}", version / major_unit, version % major_unit / minor_unit);
}

// Bytes from `at` to where the page lock of a host address may end.
std::size_t until_lock_end(const void* host, std::size_t at) {
  return PageLock::kPiece - (reinterpret_cast<std::uintptr_t>(host) + at) % PageLock::kPiece;
}

class CudaMachine : public Machine {
 public:
  CudaMachine(int device, const CudaOptions& options);

  std::string name() const override { return name_; }
  std::string backend() const override { return "cuda"; }
  std::string capability() const override { return fmt::format("{}.{}", major_, minor_); }
  std::string library_versions() const override;
  Place place() const override { return Place::device; }
  std::size_t free_memory() const override { return memory().free; }
  std::size_t total_memory() const override { return memory().total; }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<CudaQueue>(device_); }
  Operators& operators() override { return *operators_; }
  void* allocate(std::size_t bytes, Place place) override;
  void release(void* data, Place place) override;
  void copy(Queue& queue, const Tensor& from, const Tensor& to) override;

 private:
  struct Memory {
    std::size_t free = 0, total = 0;
  };
  Memory memory() const;

  int device_;
  std::string name_;
  int major_ = 0, minor_ = 0;
  std::unique_ptr<CudaOperators> operators_;
};

CudaMachine::CudaMachine(int device, const CudaOptions& options) : device_(device) {
  H3_CUDA(cudaSetDevice(device));
  cudaDeviceProp properties{};
  H3_CUDA(cudaGetDeviceProperties(&properties, device));
  name_ = properties.name;
  major_ = properties.major;
  minor_ = properties.minor;
  const cudaError_t covered = kernels::covers_device();
  if (covered == cudaErrorNoKernelImageForDevice || covered == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    throw UserError("device", "gpu", fmt::format("{} ({}), compute capability {}", device, name_, capability()),
                    fmt::format("a GPU of the architectures that this build covers: {}", kernels::architectures()));
  }
  check_call(covered, "loading the kernels");
  operators_ = std::make_unique<CudaOperators>(major_ * 10 + minor_, options);
}

std::string CudaMachine::library_versions() const {
  int driver = 0, runtime = 0;
  H3_CUDA(cudaDriverGetVersion(&driver));
  H3_CUDA(cudaRuntimeGetVersion(&runtime));
  const auto blas = static_cast<int>(cublasLtGetVersion());
  const auto dnn = static_cast<int>(cudnnGetVersion());
  return fmt::format("driver for CUDA {}, CUDA {}, cuBLASLt {}.{}.{}, cuDNN {}.{}.{}", version_text(driver, 1000, 10),
                     version_text(runtime, 1000, 10), blas / 10000, blas / 100 % 100, blas % 100, dnn / 10000,
                     dnn / 100 % 100, dnn % 100);
}

CudaMachine::Memory CudaMachine::memory() const {
  Memory m;
  H3_CUDA(cudaSetDevice(device_));
  H3_CUDA(cudaMemGetInfo(&m.free, &m.total));
  return m;
}

void* CudaMachine::allocate(std::size_t bytes, Place place) {
  if (bytes == 0) return nullptr;
  H3_CUDA(cudaSetDevice(device_));
  void* data = nullptr;
  const cudaError_t status =
      place == Place::device ? cudaMalloc(&data, bytes) : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    if (place == Place::host)
      throw RunError(fmt::format("no {} bytes of page-locked host memory for {}", bytes, name_));
    throw RunError(fmt::format("{} has {} bytes of memory free where {} are needed", name_, memory().free, bytes));
  }
  check_call(status, place == Place::device ? "cudaMalloc" : "cudaHostAlloc");
  return data;
}

void CudaMachine::release(void* data, Place place) {
  cudaSetDevice(device_);
  if (place == Place::device)
    cudaFree(data);
  else
    cudaFreeHost(data);
}

void CudaMachine::copy(Queue& queue, const Tensor& from, const Tensor& to) {
  CHECK_EQ(name_of(from.dtype), name_of(to.dtype));
  CHECK_EQ(from.elements(), to.elements());
  H3_CHECK(from.contiguous() && to.contiguous(), "a copy between places is of contiguous tensors");
  if (from.elements() == 0) return;
  const cudaStream_t stream = cuda_queue(queue).stream();
  const void* host = from.place == Place::host ? from.data : to.place == Place::host ? to.data : nullptr;
  for (std::size_t at = 0; at < from.bytes();) {
    const std::size_t bytes = std::min(from.bytes() - at, host ? until_lock_end(host, at) : from.bytes());
    H3_CUDA(cudaMemcpyAsync(static_cast<char*>(to.data) + at, static_cast<const char*>(from.data) + at, bytes,
                            cudaMemcpyDefault, stream));
    at += bytes;
  }
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

std::string cuda_bus_id(int device) {
  char text[32] = {};
  H3_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device));
  return text;
}

std::unique_ptr<Machine> make_cuda_machine(int device, const CudaOptions& options) {
  const int count = cuda_device_count();
  if (device < 0 || device >= count)
    throw UserError("device", "gpu", std::to_string(device),
                    count == 0 ? std::string("no GPU is visible (is the NVIDIA driver installed?)")
                               : fmt::format("a GPU from 0 to {}", count - 1));
  return std::make_unique<CudaMachine>(device, options);
}

}  // namespace h3
