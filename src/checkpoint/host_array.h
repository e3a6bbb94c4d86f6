// An array in host memory, row-major, with its dtype: how tensors enter and leave this room, which knows no machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/dtype.h"

namespace h3 {

struct HostArray {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t dimension : shape) n *= dimension;
    return n;
  }
  // Copies `shape`'s elements from `data`.
  static HostArray copy_of(const void* data, DType dtype, std::vector<std::int64_t> shape) {
    HostArray array{dtype, std::move(shape), {}};
    array.bytes.resize(static_cast<std::size_t>(array.count()) * size_of(dtype));
    if (!array.bytes.empty()) std::memcpy(array.bytes.data(), data, array.bytes.size());
    return array;
  }
  bool operator==(const HostArray&) const = default;
};

}  // namespace h3
