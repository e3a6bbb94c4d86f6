#include "parallel/peer_signals.h"

#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "compute/cuda/cuda_error.h"
#include "parallel/driver_call.h"

namespace h3 {

namespace {

constexpr int kSignals = 2;
// Each counter has a line of the cache for itself.
constexpr std::size_t kSpacing = 64 / sizeof(std::uint32_t);

// Maps a piece of shared memory that has no name once all ranks have it. The reason why not, or "".
std::string map_together(MpiCommunicator& node, std::size_t bytes, void*& data) {
  std::random_device random;
  const std::string name = node.broadcast_text(fmt::format("/h3render.{}.{:08x}", ::getpid(), random()), 0);
  std::string problem;
  const auto map = [&](int flags) {
    const int fd = ::shm_open(name.c_str(), O_RDWR | flags, 0600);
    if (fd < 0 || (flags != 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)) problem = std::strerror(errno);
    if (problem.empty()) data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (problem.empty() && data == MAP_FAILED) problem = std::strerror(errno);
    if (!problem.empty()) data = nullptr;
    if (fd >= 0) ::close(fd);
  };
  if (node.rank() == 0) map(O_CREAT | O_EXCL);
  node.barrier();
  if (node.rank() != 0) map(0);
  std::string first;
  for (const std::string& p : node.gather_text(problem))
    if (first.empty()) first = p;
  if (node.rank() == 0) ::shm_unlink(name.c_str());
  return first;
}

}  // namespace

PeerSignals::PeerSignals(MpiCommunicator& node) : rank_(node.rank()), size_(node.size()) {
  constexpr std::size_t kPage = 4096;
  const std::size_t needed = index(size_, 0, PeerSignal::ready) * sizeof(std::uint32_t);
  bytes_ = (needed + kPage - 1) / kPage * kPage;
  void* data = nullptr;
  const std::string problem = map_together(node, bytes_, data);
  counters_ = static_cast<std::uint32_t*>(data);
  if (problem.empty()) return;
  if (counters_) ::munmap(counters_, bytes_);
  throw RunError(fmt::format("no shared memory for the signals between GPUs: {}", problem));
}

PeerSignals::~PeerSignals() {
  if (on_gpu_) cudaHostUnregister(counters_);
  ::munmap(counters_, bytes_);
}

void PeerSignals::attach() {
  H3_CUDA(cudaHostRegister(counters_, bytes_, cudaHostRegisterPortable | cudaHostRegisterMapped));
  H3_CUDA(cudaHostGetDevicePointer(&on_gpu_, counters_, 0));
}

std::size_t PeerSignals::index(int reader, int writer, PeerSignal signal) const {
  const int n = (reader * size_ + writer) * kSignals + static_cast<int>(signal);
  return static_cast<std::size_t>(n) * kSpacing;
}

std::uintptr_t PeerSignals::address(int reader, int writer, PeerSignal signal) const {
  return reinterpret_cast<std::uintptr_t>(static_cast<std::uint32_t*>(on_gpu_) + index(reader, writer, signal));
}

void PeerSignals::write(cudaStream_t stream, int to, PeerSignal signal, std::uint32_t value) {
  static const auto call = H3_DRIVER_ENTRY(cuStreamWriteValue32);
  check_driver(call(stream, address(to, rank_, signal), value, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
}

void PeerSignals::wait(cudaStream_t stream, int from, PeerSignal signal, std::uint32_t value) {
  static const auto call = H3_DRIVER_ENTRY(cuStreamWaitValue32);
  check_driver(call(stream, address(rank_, from, signal), value, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
}

void PeerSignals::release(std::uint32_t value) {
  constexpr std::uint32_t kFar = 1u << 30;
  for (int from = 0; from < size_; ++from)
    for (const PeerSignal signal : {PeerSignal::ready, PeerSignal::taken})
      std::atomic_ref(counters_[index(rank_, from, signal)]).store(value + kFar);
}

}  // namespace h3
