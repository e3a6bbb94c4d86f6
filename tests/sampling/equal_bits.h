// Comparison of float32 values by their bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "compute/tensor.h"

namespace h3::test {

inline std::span<const float> floats_of(const Tensor& t) {
  return {t.as<float>(), static_cast<std::size_t>(t.elements())};
}

inline void expect_equal_bits(std::span<const float> actual, std::span<const float> expected, const std::string& name) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  std::size_t different = 0, first = 0;
  for (std::size_t i = actual.size(); i-- > 0;) {
    if (std::bit_cast<std::uint32_t>(actual[i]) == std::bit_cast<std::uint32_t>(expected[i])) continue;
    ++different;
    first = i;
  }
  EXPECT_EQ(different, 0u) << name << ": first at " << first << ", " << actual[first] << " against " << expected[first];
}

}  // namespace h3::test
