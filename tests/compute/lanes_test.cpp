// The arithmetic under the operators: half conversions over all values, the vector exponential and squared sine.
#include "compute/cpu/lanes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/dtype.h"

namespace h3::test {
namespace {

// What the 16 bits of a binary16 number mean.
double meaning_of(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

TEST(HalfConversionTest, EveryHalfWidensAndComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float wide = to_f32(f16_t{bits});
    if (std::isnan(meaning_of(bits))) {
      ASSERT_TRUE(std::isnan(wide));
      ASSERT_TRUE(std::isnan(to_f32(to_f16(wide))));
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), meaning_of(bits));
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0);
    ASSERT_EQ(to_f16(wide).bits, bits);
  }
}

// Between two neighbouring halves the middle goes to the even one, everything else to the nearer one.
TEST(HalfConversionTest, RoundsToNearestEven) {
  for (std::uint32_t i = 0; i < 0x7c00; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const double above = i + 1 == 0x7c00 ? 65536.0 : meaning_of(high);
    const auto middle = static_cast<float>((meaning_of(low) + above) / 2);
    ASSERT_EQ(to_f16(middle).bits, i % 2 ? high : low);
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)).bits, low);
    ASSERT_EQ(to_f16(std::nextafter(middle, 1e30f)).bits, high);
    ASSERT_EQ(to_f16(-middle).bits, (i % 2 ? high : low) | 0x8000);
  }
  EXPECT_EQ(to_f16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(LanesTest, ExponentialIsWithinTwoUnits) {
  double worst = 0;
  for (double x = -87.3; x < 88.7; x += 0.00137) {
    const auto value = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(value));
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(cpu::exp8(cpu::splat(value))[5]) - exact) / unit);
  }
  EXPECT_LT(worst, 1.5);
}

TEST(LanesTest, ExponentialStandsExtremes) {
  const float inf = std::numeric_limits<float>::infinity();
  const cpu::F8 y = cpu::exp8(cpu::F8{-inf, -1e30f, -90.0f, 0.0f, 88.72f, 89.5f, inf, NAN});
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], 1.0f);
  EXPECT_TRUE(std::isfinite(y[4]));
  EXPECT_EQ(y[5], inf);
  EXPECT_EQ(y[6], inf);
  EXPECT_TRUE(std::isnan(y[7]));
}

TEST(LanesTest, SquaredSine) {
  double worst = 0;
  for (double x = -30000.0; x < 30000.0; x += 0.1237) {
    const auto value = static_cast<float>(x);
    const double exact = std::pow(std::sin(static_cast<double>(value)), 2);
    worst = std::max(worst, std::abs(static_cast<double>(cpu::sin_squared8(cpu::splat(value))[3]) - exact));
  }
  EXPECT_LT(worst, 2.5e-7);
  const float inf = std::numeric_limits<float>::infinity();
  const cpu::F8 y = cpu::sin_squared8(cpu::F8{0.0f, -0.0f, inf, NAN, 1e-20f, 3.14159274f, 1.57079637f, 1e30f});
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_LT(y[5], 1e-13f);
  EXPECT_EQ(y[6], 1.0f);
  EXPECT_LE(y[7], 1.0f);
}

TEST(LanesTest, SumsEndInOneTree) {
  const cpu::F8 v{1.0f, 1e8f, -1.0f, 3.0f, 0.5f, -1e8f, 2.0f, 4.0f};
  EXPECT_EQ(cpu::sum_lanes(v), ((1.0f + 0.5f) + (-1.0f + 2.0f)) + ((1e8f + -1e8f) + (3.0f + 4.0f)));
}

}  // namespace
}  // namespace h3::test
