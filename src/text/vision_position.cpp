#include "text/vision_position.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "text/rope_frequencies.h"

namespace h3 {
namespace {

// torch.linspace(0, last, count)[i] in float32.
float linspace(std::int64_t last, std::int64_t count, std::int64_t i) {
  if (count == 1) return 0;
  const auto end = static_cast<float>(last);
  const float step = end / static_cast<float>(count - 1);
  return i < count / 2 ? step * static_cast<float>(i) : end - step * static_cast<float>(count - 1 - i);
}

// The two entries of a side of the table that a coordinate lies between, and how far it is from the first.
struct Between {
  std::int64_t lower = 0, upper = 0;
  float distance = 0;
};

Between between(std::int64_t side, std::int64_t count, std::int64_t i) {
  const float coordinate = linspace(side - 1, count, i);
  const auto lower = static_cast<std::int64_t>(coordinate);
  return {lower, std::min(lower + 1, side - 1), coordinate - static_cast<float>(lower)};
}

template <typename T>
void interpolate(const Tensor& table, std::int64_t rows, std::int64_t columns, std::int64_t first, const Tensor& out) {
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(table.size(0)))));
  CHECK_EQ(side * side, table.size(0));
  const std::int64_t width = table.size(1);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < out.size(0); ++i) {
    const PatchPlace place = patch_place(first + i, columns);
    const Between y = between(side, rows, place.row), x = between(side, columns, place.column);
    const float weights[4] = {(1 - y.distance) * (1 - x.distance), (1 - y.distance) * x.distance,
                              y.distance * (1 - x.distance), y.distance * x.distance};
    const T* corners[4] = {
        table.as<T>() + (y.lower * side + x.lower) * width, table.as<T>() + (y.lower * side + x.upper) * width,
        table.as<T>() + (y.upper * side + x.lower) * width, table.as<T>() + (y.upper * side + x.upper) * width};
    T* to = out.as<T>() + i * width;
    for (std::int64_t j = 0; j < width; ++j) {
      float sum = weights[0] * to_f32(corners[0][j]);
      for (int k = 1; k < 4; ++k) sum += weights[k] * to_f32(corners[k][j]);
      to[j] = from_f32<T>(sum);
    }
  }
}

}  // namespace

PatchPlace patch_place(std::int64_t i, std::int64_t columns) {
  const std::int64_t in_rows = i % (2 * columns);  // of a row of blocks
  return {i / (2 * columns) * 2 + in_rows % 4 / 2, in_rows / 4 * 2 + in_rows % 2};
}

void fill_vision_positions(const Tensor& table, std::int64_t rows, std::int64_t columns, std::int64_t first,
                           const Tensor& out) {
  CHECK_EQ(out.size(1), table.size(1));
  H3_CHECK(out.dtype == table.dtype && table.contiguous() && out.contiguous(), "position table");
  if (table.dtype == DType::f32) return interpolate<float>(table, rows, columns, first, out);
  H3_CHECK(table.dtype == DType::bf16, std::string(name_of(table.dtype)));
  interpolate<bf16_t>(table, rows, columns, first, out);
}

void fill_vision_rope(const VisionConfig& config, std::int64_t rows, std::int64_t columns, const Tensor& cos,
                      const Tensor& sin) {
  const std::int64_t half = config.hidden / config.heads / 2, quarter = half / 2;
  const std::vector<float> frequencies = rotary_frequencies(quarter, 10000);
  for (const Tensor* t : {&cos, &sin}) {
    H3_CHECK(t->shape == Shape({rows * columns, half}) && t->dtype == DType::f32 && t->contiguous(), t->shape.text());
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const PatchPlace place = patch_place(i, columns);
    for (std::int64_t j = 0; j < half; ++j) {
      const auto position = static_cast<float>(j < quarter ? place.row : place.column);
      const float angle = position * frequencies[static_cast<std::size_t>(j % quarter)];
      cos.as<float>()[i * half + j] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sin.as<float>()[i * half + j] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

}  // namespace h3
