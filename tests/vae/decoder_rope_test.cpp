// The rotary tables of spec/vae.md 7 step 5, and the roundings of profile R (8.1).
#include "vae/decoder_rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/dtype.h"
#include "base/error.h"

namespace h3 {
namespace {

constexpr std::int64_t kExtra = 5;

VideoVaeConfig released_config() {
  return released_model_config().video_vae;
}

TEST(DecoderRope, HalfPrecisionAngles) {
  const float seven[] = {-5.38671875f, -3.58984375f, -1.794921875f, 0.0f, 1.7978515625f, 3.58984375f, 5.38671875f};
  for (std::int64_t i = 0; i < 7; ++i) EXPECT_EQ(rope_base_angle(i, 7, VaeProfile::R), seven[i]) << i;
  for (std::int64_t i = 0; i < 16; ++i) {
    const float coordinate = 0.0625f * static_cast<float>(2 * i - 15);
    EXPECT_EQ(rope_base_angle(i, 16, VaeProfile::R), round_to(DType::f16, 6.2831855f * coordinate)) << i;
    EXPECT_EQ(rope_base_angle(i, 16, VaeProfile::F), 6.2831855f * coordinate) << i;
  }
}

TEST(DecoderRope, TableOfATile) {
  const VideoVaeConfig config = released_config();
  ASSERT_EQ(rope_frequencies(config), 8);
  const TokenGrid grid{7, 16, 12};
  for (const VaeProfile profile : {VaeProfile::F, VaeProfile::R}) {
    const RopeTable table = decoder_rope(config, grid, kExtra, profile);
    ASSERT_EQ(table.rows, 7 * 16 * 12 + kExtra);
    ASSERT_EQ(table.columns, 24);
    ASSERT_EQ(static_cast<std::int64_t>(table.cos.size()), table.rows * table.columns);
    const double tolerance = profile == VaeProfile::R ? 5e-4 : 1e-6;
    for (const auto& [t, y, x] : {std::array<std::int64_t, 3>{0, 0, 0}, {2, 5, 11}, {6, 15, 0}}) {
      const std::size_t row = static_cast<std::size_t>((t * grid.h + y) * grid.w + x);
      const float base[] = {rope_base_angle(t, 7, profile), rope_base_angle(y, 16, profile),
                            rope_base_angle(x, 12, profile)};
      for (std::size_t j = 0; j < 24; ++j) {
        const double angle = static_cast<double>(base[j / 8]) * std::pow(100.0, -static_cast<double>(j % 8) / 8);
        EXPECT_NEAR(table.cos[row * 24 + j], std::cos(angle), tolerance);
        EXPECT_NEAR(table.sin[row * 24 + j], std::sin(angle), tolerance);
      }
    }
    for (std::size_t i = static_cast<std::size_t>(grid.tokens()) * 24; i < table.cos.size(); ++i) {
      EXPECT_EQ(table.cos[i], 1.0f);
      EXPECT_EQ(table.sin[i], 0.0f);
    }
    const DType type = profile == VaeProfile::R ? DType::f16 : DType::f32;
    for (const float v : table.sin) EXPECT_EQ(v, round_to(type, v));
  }
}

TEST(DecoderRope, RefusesChannelsThatDoNotSplit) {
  VideoVaeConfig config = released_config();
  config.rope_ratio = 0.5;
  EXPECT_THROW(rope_frequencies(config), UserError);
}

}  // namespace
}  // namespace h3
