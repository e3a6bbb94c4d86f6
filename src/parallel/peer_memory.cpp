#include "parallel/peer_memory.h"

#include <cstring>

#include "compute/cuda/cuda_error.h"
#include "parallel/driver_call.h"

namespace h3 {

namespace {

// Where a tensor lies in an allocation of its process.
struct Located {
  cudaIpcMemHandle_t allocation;
  std::uint64_t offset, row_bytes, row_step;
  std::int64_t rows;
};

}  // namespace

class PeerMemory::Mapping {
 public:
  explicit Mapping(const cudaIpcMemHandle_t& allocation) {
    H3_CUDA(cudaIpcOpenMemHandle(&data_, allocation, cudaIpcMemLazyEnablePeerAccess));
  }
  ~Mapping() { cudaIpcCloseMemHandle(data_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const char* data() const { return static_cast<const char*>(data_); }

 private:
  void* data_ = nullptr;
};

std::string PeerMemory::name(const Tensor& t) {
  if (t.elements() == 0) return "";
  CHECK_EQ(t.rank(), 2);
  H3_CHECK(t.place == Place::device && t.stride(1) == 1, "peers read rows of device memory");
  static const auto range_of = H3_DRIVER_ENTRY(cuMemGetAddressRange);
  const auto data = reinterpret_cast<CUdeviceptr>(t.data);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  check_driver(range_of(&base, &bytes, data), "cuMemGetAddressRange");
  Located located{};
  H3_CUDA(cudaIpcGetMemHandle(&located.allocation, reinterpret_cast<void*>(base)));
  located.offset = data - base;
  located.row_bytes = static_cast<std::uint64_t>(t.size(1)) * size_of(t.dtype);
  located.row_step = static_cast<std::uint64_t>(t.stride(0)) * size_of(t.dtype);
  located.rows = t.size(0);
  return std::string(reinterpret_cast<const char*>(&located), sizeof located);
}

PeerMemory::Opened PeerMemory::open(std::string_view named) {
  Located located{};
  CHECK_EQ(named.size(), sizeof located);
  std::memcpy(&located, named.data(), sizeof located);
  std::weak_ptr<Mapping>& known =
      mappings_[std::string(reinterpret_cast<const char*>(&located.allocation), sizeof located.allocation)];
  std::shared_ptr<Mapping> mapping = known.lock();
  if (!mapping) known = mapping = std::make_shared<Mapping>(located.allocation);
  return {mapping->data() + located.offset, located.row_bytes, located.row_step, located.rows, mapping};
}

}  // namespace h3
