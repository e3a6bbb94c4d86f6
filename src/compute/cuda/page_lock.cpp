#include "compute/cuda/page_lock.h"

#include <sys/resource.h>

#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "base/helper_thread.h"
#include "compute/cuda/cuda_error.h"

namespace h3 {

namespace {

// The piece of `memory` that begins at byte `at`.
std::span<std::byte> piece_of(std::span<std::byte> memory, std::size_t at) {
  const std::size_t left = PageLock::kPiece - reinterpret_cast<std::uintptr_t>(memory.data() + at) % PageLock::kPiece;
  return memory.subspan(at, std::min(left, memory.size() - at));
}

// A file's pages can often be locked for reading alone.
cudaError_t lock(std::span<std::byte> piece) {
  const cudaError_t status = cudaHostRegister(piece.data(), piece.size(), cudaHostRegisterPortable);
  if (status == cudaSuccess) return status;
  cudaGetLastError();  // not an error of a later call
  if (cudaHostRegister(piece.data(), piece.size(), cudaHostRegisterPortable | cudaHostRegisterReadOnly) == cudaSuccess)
    return cudaSuccess;
  cudaGetLastError();
  return status;
}

std::string lockable_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; this process may lock {} KiB (ulimit -l)", limit.rlim_cur / 1024);
}

}  // namespace

PageLock::PageLock(std::span<std::byte> memory, std::function<void(const Outcome&)> done)
    : memory_(memory), done_(std::move(done)) {
  int device = 0;
  H3_CUDA(cudaGetDevice(&device));
  thread_ = start_helper_thread([this, device] { lock_all(device); });
}

PageLock::~PageLock() {
  stop_ = true;
  wait();
  for (std::size_t at = 0; at < outcome_.bytes; at += piece_of(memory_, at).size())
    cudaHostUnregister(memory_.data() + at);
}

const PageLock::Outcome& PageLock::wait() {
  if (thread_.joinable()) thread_.join();
  return outcome_;
}

void PageLock::lock_all(int device) {
  const double start = steady_seconds();
  cudaError_t status = cudaSetDevice(device);
  while (status == cudaSuccess && outcome_.bytes < memory_.size() && !stop_) {
    const std::span<std::byte> piece = piece_of(memory_, outcome_.bytes);
    status = lock(piece);
    if (status == cudaSuccess) outcome_.bytes += piece.size();
  }
  outcome_.seconds = steady_seconds() - start;
  if (status != cudaSuccess)
    outcome_.obstacle = fmt::format("cudaHostRegister: {}{}", cudaGetErrorString(status), lockable_memory());
  if (done_ && !stop_) done_(outcome_);
}

}  // namespace h3
