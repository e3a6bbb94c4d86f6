#include "random_tensors.h"

#include <cmath>
#include <cstring>
#include <random>

namespace h3::test {

namespace {

void set_value(const Tensor& t, std::int64_t element, float value) {
  switch (t.dtype) {
    case DType::f32:
      t.as<float>()[element] = value;
      break;
    case DType::bf16:
      t.as<bf16_t>()[element] = to_bf16(value);
      break;
    case DType::f16:
      t.as<f16_t>()[element] = to_f16(value);
      break;
    default:
      FAIL() << "not a float tensor";
  }
}

// Calls f(element offset) in row-major order.
template <typename F>
void for_each_element(const Tensor& t, F&& f, int axis = 0, std::int64_t offset = 0) {
  if (axis == t.rank()) return f(offset);
  for (std::int64_t i = 0; i < t.size(axis); ++i) for_each_element(t, f, axis + 1, offset + i * t.stride(axis));
}

}  // namespace

OwnedTensor::OwnedTensor(Shape shape, DType dtype, std::int64_t gap) {
  Shape wide = shape;
  wide[-1] += gap;
  memory_.assign(static_cast<std::size_t>(wide.elements()) * size_of(dtype) / 8 + 1, ~std::uint64_t{0});
  view_ = Tensor(memory_.data(), wide, dtype).slice(shape.rank() - 1, 0, shape[-1]);
}

OwnedTensor random_tensor(Shape shape, DType dtype, unsigned seed, double amplitude, std::int64_t gap) {
  OwnedTensor t(shape, dtype, gap);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.0, amplitude);
  for_each_element(t, [&](std::int64_t i) { set_value(t, i, static_cast<float>(normal(generator))); });
  return t;
}

OwnedTensor poisoned_tensor(Shape shape, DType dtype, std::int64_t gap) {
  return OwnedTensor(shape, dtype, gap);
}

OwnedTensor tensor_of(Shape shape, const std::vector<float>& values, DType dtype) {
  OwnedTensor t(shape, dtype);
  auto next = values.begin();
  for_each_element(t, [&](std::int64_t i) { set_value(t, i, *next++); });
  return t;
}

OwnedTensor index_tensor(const std::vector<std::int32_t>& values) {
  OwnedTensor t({static_cast<std::int64_t>(values.size())}, DType::i32);
  std::copy(values.begin(), values.end(), t->as<std::int32_t>());
  return t;
}

OwnedTensor copy_of(const Tensor& t) {
  return tensor_of(t.shape, values_of(t), t.dtype);
}

std::vector<double> doubles_of(const Tensor& t) {
  const std::vector<float> values = values_of(t);
  return {values.begin(), values.end()};
}

void expect_near(const Tensor& actual, const std::vector<double>& expected, double relative, double absolute) {
  const std::vector<float> values = values_of(actual);
  ASSERT_EQ(values.size(), expected.size());
  int shown = 0;
  for (std::size_t i = 0; i < values.size() && shown < 5; ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - expected[i]);
    if (difference <= relative * std::abs(expected[i]) + absolute) continue;
    ++shown;
    ADD_FAILURE() << "value " << i << " of " << actual.shape.text() << ": " << values[i] << " against " << expected[i];
  }
}

void expect_same_bits(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape.text(), expected.shape.text());
  const std::vector<float> a = values_of(actual), b = values_of(expected);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0) << "value " << i << ": " << a[i] << " against " << b[i];
}

double tolerance_of(DType dtype) {
  if (dtype == DType::bf16) return 0x1.02p-8;
  if (dtype == DType::f16) return 0x1.02p-11;
  return 4e-7;
}

}  // namespace h3::test
