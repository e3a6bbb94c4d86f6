// A tensor is a view: pointer, shape, strides, element type, and which memory it lies in. It owns nothing; buffers and
// arenas do (compute/machine.h). Strides count elements; the last axis of an operator's argument is contiguous unless
// the operator says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/error.h"

namespace h3 {

enum class Place : std::uint8_t { host, device };

class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return sizes_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::int64_t& operator[](int axis) { return sizes_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::int64_t elements() const;
  bool operator==(const Shape& other) const;
  std::string text() const;  // "[2, 3]"

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

struct Tensor {
  void* data = nullptr;
  Shape shape;
  Shape strides;  // same rank as shape, in elements
  DType dtype = DType::f32;
  Place place = Place::host;

  Tensor() = default;
  // A contiguous view of `data_`.
  Tensor(void* data_, Shape shape_, DType dtype_, Place place_ = Place::host);

  int rank() const { return shape.rank(); }
  std::int64_t size(int axis) const { return shape[axis]; }
  std::int64_t stride(int axis) const { return strides[axis]; }
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  bool contiguous() const;
  explicit operator bool() const { return data != nullptr; }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // Elements [begin, end) of one axis, as a view.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  Tensor rows(std::int64_t begin, std::int64_t end) const { return slice(0, begin, end); }
  // The sub-tensor at one index of axis 0.
  Tensor at(std::int64_t index) const;
  // The same elements under another shape; the tensor is contiguous.
  Tensor reshape(Shape shape_) const;
  // Splits axis `axis` of size outer * inner into two.
  Tensor split(int axis, std::int64_t outer) const;
};

}  // namespace h3
