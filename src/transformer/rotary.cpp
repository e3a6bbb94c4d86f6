#include "transformer/rotary.h"

#include <cmath>

namespace h3 {

std::vector<float> inverse_frequencies(std::int64_t freqs, double theta) {
  std::vector<float> inverse;
  for (std::int64_t i = 0; i < freqs; ++i) {
    const double exponent = static_cast<double>(static_cast<float>(2 * i) / static_cast<float>(2 * freqs));
    inverse.push_back(1.0f / static_cast<float>(std::pow(theta, exponent)));
  }
  return inverse;
}

template <typename T>
static void fill(std::span<const Position> positions, std::span<const float> inverse, const Tensor& cos,
                 const Tensor& sin) {
#pragma omp parallel for schedule(static)
  for (std::size_t row = 0; row < positions.size(); ++row) {
    T* c = cos.as<T>() + static_cast<std::int64_t>(row) * cos.stride(0);
    T* s = sin.as<T>() + static_cast<std::int64_t>(row) * sin.stride(0);
    for (const double coordinate : positions[row]) {
      const auto p = static_cast<float>(coordinate);
      for (const float frequency : inverse) {
        // In double, so that angles of thousands are reduced exactly and the result is the rounded true value.
        const auto angle = static_cast<double>(p * frequency);
        *c++ = from_f32<T>(static_cast<float>(std::cos(angle)));
        *s++ = from_f32<T>(static_cast<float>(std::sin(angle)));
      }
    }
  }
}

void fill_rotary_table(std::span<const Position> positions, std::span<const float> inverse_frequencies,
                       const Tensor& cos, const Tensor& sin) {
  const Shape shape{static_cast<std::int64_t>(positions.size()),
                    3 * static_cast<std::int64_t>(inverse_frequencies.size())};
  H3_CHECK(cos.shape == shape && sin.shape == shape, cos.shape.text() + " for " + shape.text());
  H3_CHECK(cos.dtype == sin.dtype && cos.place == Place::host && sin.place == Place::host);
  switch (cos.dtype) {
    case DType::f32:
      return fill<float>(positions, inverse_frequencies, cos, sin);
    case DType::bf16:
      return fill<bf16_t>(positions, inverse_frequencies, cos, sin);
    case DType::f16:
      return fill<f16_t>(positions, inverse_frequencies, cos, sin);
    default:
      H3_CHECK(false, "rotary table of " + std::string(name_of(cos.dtype)));
  }
}

}  // namespace h3
