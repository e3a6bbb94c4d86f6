#include "compute/cuda/views.h"

#include "base/error.h"

namespace h3::cuda {

kernels::Element element_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kernels::Element::f32;
    case DType::bf16:
      return kernels::Element::bf16;
    case DType::f16:
      return kernels::Element::f16;
    default:
      check_failed(__FILE__, __LINE__, "a float dtype", std::string(name_of(dtype)));
  }
}

void check_memory(const Tensor& t) {
  if (t.elements() == 0) return;
  H3_CHECK(t.data != nullptr, "tensor " + t.shape.text() + " without memory");
  H3_CHECK(t.place == Place::device, "a tensor in host memory was given to the GPU");
}

void check_rows(const Tensor& t) {
  CHECK_GE(t.rank(), 1);
  check_memory(t);
  if (t.elements() > 0 && t.size(-1) > 1) CHECK_EQ(t.stride(-1), 1);
}

void check_dtype(const Tensor& t, DType dtype) {
  CHECK_EQ(name_of(t.dtype), name_of(dtype));
}

void check_same_shape(const Tensor& a, const Tensor& b) {
  H3_CHECK(a.shape == b.shape, a.shape.text() + " against " + b.shape.text());
}

kernels::Matrix matrix(const Tensor& t) {
  CHECK_EQ(t.rank(), 2);
  check_rows(t);
  return {t.data, t.size(0), t.size(1), t.stride(0), element_of(t.dtype)};
}

kernels::Matrix matrix(const Tensor& t, std::int64_t rows, std::int64_t columns) {
  const kernels::Matrix m = matrix(t);
  CHECK_EQ(m.rows, rows);
  CHECK_EQ(m.columns, columns);
  return m;
}

static void check_vector(const Tensor& t, std::int64_t n) {
  CHECK_EQ(t.rank(), 1);
  CHECK_EQ(t.size(0), n);
  check_rows(t);
}

kernels::Vector vector(const Tensor& t, std::int64_t n) {
  if (!t) return {};
  check_vector(t, n);
  return {t.data, element_of(t.dtype)};
}

const float* floats(const Tensor& t, std::int64_t n) {
  check_vector(t, n);
  check_dtype(t, DType::f32);
  return t.as<float>();
}

const float* floats_or_none(const Tensor& t, std::int64_t n) {
  return t ? floats(t, n) : nullptr;
}

const std::int32_t* indices(const Tensor& t, std::int64_t n) {
  check_vector(t, n);
  check_dtype(t, DType::i32);
  return t.as<std::int32_t>();
}

kernels::Heads heads(const Tensor& t) {
  CHECK_EQ(t.rank(), 3);
  check_rows(t);
  return {t.data, t.size(0), t.size(1), t.size(2), t.stride(0), t.stride(1), element_of(t.dtype)};
}

kernels::View4 view4(const Tensor& t) {
  CHECK_LE(t.rank(), 4);
  check_memory(t);
  kernels::View4 v;
  v.data = t.data;
  v.type = element_of(t.dtype);
  const int missing = 4 - t.rank();
  for (int axis = 0; axis < t.rank(); ++axis) {
    v.size[missing + axis] = t.size(axis);
    v.stride[missing + axis] = t.stride(axis);
  }
  return v;
}

kernels::Planes planes(const Tensor& t) {
  CHECK_EQ(t.rank(), 4);
  check_dtype(t, DType::f32);
  check_rows(t);
  const kernels::View4 v = view4(t);
  return {t.as<float>(), v.size[0], v.size[1], v.size[2], v.size[3], v.stride[0], v.stride[1], v.stride[2]};
}

kernels::Signal signal(const Tensor& t) {
  CHECK_EQ(t.rank(), 3);
  check_dtype(t, DType::f32);
  check_rows(t);
  return {t.as<float>(), t.size(0), t.size(1), t.size(2), t.stride(0), t.stride(1)};
}

kernels::ByteRows byte_rows(const Tensor& t) {
  CHECK_EQ(t.rank(), 2);
  check_rows(t);
  return {t.data, t.stride(0) * static_cast<std::int64_t>(size_of(t.dtype))};
}

bool as_matrix(const Tensor& t, Tensor& rows) {
  check_rows(t);
  const int last = t.rank() - 1;
  std::int64_t count = 1, stride = last > 0 ? t.stride(last - 1) : t.size(last);
  bool started = false;
  for (int axis = last - 1; axis >= 0; --axis) {
    if (t.size(axis) == 1) continue;
    if (!started) stride = t.stride(axis);
    if (started && t.stride(axis) != count * stride) return false;
    started = true;
    count *= t.size(axis);
  }
  rows = Tensor(t.data, Shape{count, t.size(last)}, t.dtype, t.place);
  rows.strides[0] = stride;
  return true;
}

}  // namespace h3::cuda
