#include "text/text_rope.h"

#include <cmath>

#include "text/rope_frequencies.h"

namespace h3 {
namespace {

// Which position frequency i turns with: rows and columns alternate with time until their sections are used up.
std::size_t axis_of(const TextConfig& config, std::int64_t i) {
  for (const std::size_t axis : {std::size_t{1}, std::size_t{2}}) {
    if (i % 3 == static_cast<std::int64_t>(axis) && i < 3 * config.mrope_section[axis]) return axis;
  }
  return 0;
}

void store(const Tensor& t, std::int64_t index, double value) {
  const auto rounded = static_cast<float>(value);
  if (t.dtype == DType::f32) {
    t.as<float>()[index] = rounded;
  } else {
    t.as<bf16_t>()[index] = to_bf16(rounded);
  }
}

}  // namespace

void fill_text_rope(const TextConfig& config, const std::array<std::vector<std::int32_t>, 3>& positions,
                    const Tensor& cos, const Tensor& sin) {
  const std::int64_t half = config.head_dim / 2;
  const std::vector<float> frequencies = rotary_frequencies(half, config.rope_theta);
  const auto rows = static_cast<std::int64_t>(positions[0].size());
  for (const Tensor* t : {&cos, &sin}) {
    H3_CHECK(t->shape == Shape({rows, half}) && t->contiguous(), t->shape.text());
    H3_CHECK(t->dtype == DType::f32 || t->dtype == DType::bf16, std::string(name_of(t->dtype)));
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < half; ++i) {
      const auto position = static_cast<float>(positions[axis_of(config, i)][static_cast<std::size_t>(row)]);
      const float angle = position * frequencies[static_cast<std::size_t>(i)];
      store(cos, row * half + i, std::cos(static_cast<double>(angle)));
      store(sin, row * half + i, std::sin(static_cast<double>(angle)));
    }
  }
}

}  // namespace h3
