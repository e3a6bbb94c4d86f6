#include "text/rope_frequencies.h"

#include <cmath>

namespace h3 {

std::vector<float> rotary_frequencies(std::int64_t count, double theta) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < count; ++i) {
    const float exponent = static_cast<float>(i) / static_cast<float>(count);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies.push_back(1.0f / power);
  }
  return frequencies;
}

}  // namespace h3
