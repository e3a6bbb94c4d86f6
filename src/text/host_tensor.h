// A tensor in page-locked host memory that it owns, on its way to or from the machine.
#pragma once

#include <algorithm>
#include <utility>

#include "compute/machine.h"

namespace h3 {

class HostTensor {
 public:
  HostTensor(Machine& machine, Shape shape, DType dtype)
      : buffer_(machine, std::max<std::size_t>(Tensor(nullptr, shape, dtype).bytes(), 1), Place::host),
        tensor_(buffer_.tensor(shape, dtype)) {}
  const Tensor& tensor() const { return tensor_; }
  // Hands the memory over; the tensor stays a view of it.
  Buffer take() { return std::move(buffer_); }

 private:
  Buffer buffer_;
  Tensor tensor_;
};

}  // namespace h3
