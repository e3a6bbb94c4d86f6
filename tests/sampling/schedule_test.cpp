#include "sampling/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/equal_bits.h"
#include "support/goldens.h"

namespace h3 {
namespace {

TEST(Schedule, EqualsTheReferenceBitForBit) {
  const test::Goldens goldens("schedules");
  for (const int e : goldens.json().at("meta").at("evaluations")) {
    const std::string count = "e" + std::to_string(e);
    test::expect_equal_bits(base_grid(e), test::floats_of(goldens.at("base." + count)), "base." + count);
    for (const int shift : {12, 6, 3}) {
      const std::string name = "shift" + std::to_string(shift) + "." + count;
      const Schedule schedule = shifted_schedule(e, shift, "test");
      EXPECT_EQ(schedule.evaluations(), e);
      test::expect_equal_bits(schedule.sigmas, test::floats_of(goldens.at(name + ".sigmas")), name + ".sigmas");
      test::expect_equal_bits(schedule.timesteps, test::floats_of(goldens.at(name + ".timesteps")),
                              name + ".timesteps");
    }
  }
}

TEST(Schedule, HasTheBitsOfTheSpecification) {
  const std::uint32_t expected[] = {0x3f800000, 0x3f7cfcfd, 0x3f7914c2, 0x3f73cf3d, 0x3f6c4ec5,
                                    0x3f60c7ce, 0x3f4ccccd, 0x3f21af28, 0x00000000};
  const Schedule schedule = shifted_schedule(8, 12, "test");
  ASSERT_EQ(schedule.sigmas.size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(schedule.sigmas[i]), expected[i]) << i;
}

TEST(Schedule, FallsStrictlyToZero) {
  for (const int e : {1, 2, 3, 7, 33, 100, 999, 4999}) {
    for (const double shift : {0.5, 1.0, 3.0, 12.0}) {
      const Schedule schedule = shifted_schedule(e, shift, "test");
      EXPECT_EQ(schedule.evaluations(), e);
      EXPECT_EQ(schedule.sigmas.front(), 1.0f);
      EXPECT_EQ(schedule.sigmas.back(), 0.0f);
      for (std::size_t i = 1; i < schedule.sigmas.size(); ++i) EXPECT_LT(schedule.sigmas[i], schedule.sigmas[i - 1]);
    }
  }
}

TEST(Schedule, DropsValuesThatCoincide) {
  const Schedule schedule = shifted_schedule(50, 1e9, "test");
  EXPECT_LT(schedule.evaluations(), 50);
  EXPECT_EQ(schedule.sigmas.back(), 0.0f);
  for (std::size_t i = 1; i < schedule.sigmas.size(); ++i) EXPECT_LT(schedule.sigmas[i], schedule.sigmas[i - 1]);
  EXPECT_THROW(pair_schedules(schedule, shifted_schedule(50, 3, "test"), "scene.json"), UserError);
}

TEST(Schedule, RefusesBadCountsAndShifts) {
  for (const int e : {0, -1, 100001}) EXPECT_THROW(shifted_schedule(e, 12, "scene.json"), UserError) << e;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double shift : {0.0, -3.0, infinity, std::nan("")}) {
    EXPECT_THROW(shifted_schedule(8, shift, "scene.json"), UserError) << shift;
  }
}

TEST(Schedule, TakesExplicitSigmasVerbatim) {
  const std::vector<double> sigmas{0.9, 0.5, 0.1, 0.0};
  const Schedule schedule = explicit_schedule(sigmas, "scene.json", "sigmas");
  EXPECT_EQ(schedule.sigmas, (std::vector<float>{0.9f, 0.5f, 0.1f, 0.0f}));
  EXPECT_EQ(schedule.timesteps, (std::vector<float>{1.0f - 0.9f, 1.0f - 0.5f, 1.0f - 0.1f}));
}

TEST(Schedule, RefusesExplicitSigmasThatDoNotFallToZero) {
  const std::vector<double> lists[] = {{},
                                       {0.0},
                                       {1.0},
                                       {1.0, 0.5},
                                       {1.0, 0.5, 1e-60},
                                       {1.0, 1.0, 0.0},
                                       {0.5, 0.7, 0.0},
                                       {1.5, 0.5, 0.0},
                                       {1.0, -0.5, 0.0},
                                       {1.0, 0.0, 0.0},
                                       {1.0, std::nan(""), 0.0},
                                       {0.5, 0.5 - 1e-12, 0.0}};
  for (const auto& list : lists) {
    EXPECT_THROW(explicit_schedule(list, "scene.json", "sigmas"), UserError) << list.size();
  }
}

TEST(Schedule, DerivesAudioSigmasFromVideoSigmas) {
  const Schedule video = shifted_schedule(20, 12, "test"), audio = shifted_schedule(20, 3, "test");
  const std::vector<double> sigmas(video.sigmas.begin(), video.sigmas.end());
  const std::vector<double> derived = audio_sigmas_for(sigmas, 12, 3);
  for (std::size_t i = 0; i < derived.size(); ++i) EXPECT_NEAR(derived[i], static_cast<double>(audio.sigmas[i]), 1e-6);
  EXPECT_EQ(derived.back(), 0.0);
  EXPECT_NO_THROW(pair_schedules(video, explicit_schedule(derived, "test", "sigmas"), "test"));
}

}  // namespace
}  // namespace h3
