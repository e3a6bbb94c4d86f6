#include "compute/machine.h"

#include <algorithm>
#include <utility>

namespace h3 {

Buffer::Buffer(Machine& machine, std::size_t bytes, Place place)
    : machine_(&machine), data_(machine.allocate(bytes, place)), bytes_(bytes), place_(place) {}

Buffer::~Buffer() {
  if (data_) machine_->release(data_, place_);
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(place_, other.place_);
  return *this;
}

Tensor Arena::take(Shape shape, DType dtype) {
  constexpr std::size_t kAlign = 256;
  const std::size_t offset = (used_ + kAlign - 1) / kAlign * kAlign;
  const std::size_t end = offset + static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  used_ = end;
  peak_ = std::max(peak_, used_);
  if (!buffer_.data()) return Tensor(nullptr, shape, dtype, buffer_.place());
  CHECK_LE(end, capacity_);
  return Tensor(static_cast<char*>(buffer_.data()) + offset, shape, dtype, buffer_.place());
}

}  // namespace h3
