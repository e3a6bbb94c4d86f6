#include "compute/tensor.h"

namespace h3 {

Shape::Shape(std::span<const std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  CHECK_LE(rank_, kMaxRank);
  for (int i = 0; i < rank_; ++i) sizes_[static_cast<std::size_t>(i)] = sizes[static_cast<std::size_t>(i)];
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= (*this)[i];
  return n;
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i)
    if ((*this)[i] != other[i]) return false;
  return true;
}

std::string Shape::text() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string((*this)[i]);
  return s + "]";
}

static Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

Tensor::Tensor(void* data_, Shape shape_, DType dtype_, Place place_)
    : data(data_), shape(shape_), strides(contiguous_strides(shape_)), dtype(dtype_), place(place_) {}

bool Tensor::contiguous() const {
  const Shape expected = contiguous_strides(shape);
  for (int i = 0; i < rank(); ++i)
    if (shape[i] > 1 && strides[i] != expected[i]) return false;
  return true;
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const {
  CHECK_LE(0, begin);
  CHECK_LE(begin, end);
  CHECK_LE(end, size(axis));
  Tensor t = *this;
  t.data = static_cast<char*>(data) + begin * stride(axis) * static_cast<std::int64_t>(size_of(dtype));
  t.shape[axis] = end - begin;
  return t;
}

Tensor Tensor::at(std::int64_t index) const {
  const Tensor row = slice(0, index, index + 1);
  Tensor t(row.data, {}, dtype, place);
  std::array<std::int64_t, Shape::kMaxRank> sizes{}, steps{};
  for (int i = 1; i < rank(); ++i) {
    sizes[static_cast<std::size_t>(i - 1)] = size(i);
    steps[static_cast<std::size_t>(i - 1)] = stride(i);
  }
  const auto n = static_cast<std::size_t>(rank() - 1);
  t.shape = Shape(std::span<const std::int64_t>(sizes.data(), n));
  t.strides = Shape(std::span<const std::int64_t>(steps.data(), n));
  return t;
}

Tensor Tensor::reshape(Shape shape_) const {
  H3_CHECK(contiguous(), "reshape of a strided tensor");
  CHECK_EQ(shape_.elements(), elements());
  return Tensor(data, shape_, dtype, place);
}

Tensor Tensor::split(int axis, std::int64_t outer) const {
  const int a = axis < 0 ? axis + rank() : axis;
  CHECK_EQ(size(a) % outer, 0);
  std::array<std::int64_t, Shape::kMaxRank> sizes{}, steps{};
  int n = 0;
  for (int i = 0; i < rank(); ++i) {
    if (i == a) {
      sizes[static_cast<std::size_t>(n)] = outer;
      steps[static_cast<std::size_t>(n++)] = stride(i) * (size(i) / outer);
    }
    sizes[static_cast<std::size_t>(n)] = i == a ? size(i) / outer : size(i);
    steps[static_cast<std::size_t>(n++)] = stride(i);
  }
  Tensor t = *this;
  t.shape = Shape(std::span<const std::int64_t>(sizes.data(), static_cast<std::size_t>(n)));
  t.strides = Shape(std::span<const std::int64_t>(steps.data(), static_cast<std::size_t>(n)));
  return t;
}

}  // namespace h3
