// Memory of another process's GPU, mapped into this one (CUDA IPC): a rank names a tensor in words, its peers open what
// they read. Each allocation is opened once, however many tensors lie in it, and closed with the last of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compute/tensor.h"

namespace h3 {

class PeerMemory {
 public:
  // Where a device tensor [rows, w] with a free row stride lies, as bytes that a peer can open; "" for an empty one.
  static std::string name(const Tensor& t);

  // Memory that stays mapped as long as somebody holds it.
  class Mapping;
  struct Opened {
    const void* data = nullptr;
    std::size_t row_bytes = 0, row_step = 0;  // of one row, and from a row to the next
    std::int64_t rows = 0;
    std::shared_ptr<Mapping> mapping;
  };
  // What `name` gave on another rank. Throws RunError where this GPU cannot reach that one.
  Opened open(std::string_view named);

 private:
  std::map<std::string, std::weak_ptr<Mapping>, std::less<>> mappings_;  // by IPC handle
};

}  // namespace h3
