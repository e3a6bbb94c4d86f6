#include "media/frame_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/goldens.h"

namespace h3::test {

// The stored frame that each slot shows.
static std::vector<std::int64_t> shown(const FrameTimes& times) {
  std::vector<std::int64_t> frames;
  for (std::size_t i = 0; i < times.size(); ++i)
    frames.insert(frames.end(), static_cast<std::size_t>(times.first_slot(i + 1) - times.first_slot(i)),
                  static_cast<std::int64_t>(i));
  return frames;
}

static std::vector<std::int64_t> golden_slots(const Goldens& media, const std::string& rate) {
  const Tensor t = media.at("slots." + rate);
  const auto* begin = static_cast<const std::int64_t*>(t.data);
  return {begin, begin + t.elements()};
}

TEST(FrameTimes, ConstantRatesAsStored) {
  const Goldens media("media");
  for (const char* rate : {"12", "23.976", "25", "29.97", "30", "60"})
    EXPECT_EQ(shown(FrameTimes(41, std::stod(rate))), golden_slots(media, rate)) << rate;
}

// Timestamps in units of `tick`, rounded as a muxer rounds them.
static FrameTimes stamped(std::int64_t count, double rate, Tick tick, std::int64_t start = 0) {
  const double unit = static_cast<double>(tick.numerator) / static_cast<double>(tick.denominator);
  std::vector<std::int64_t> ticks;
  for (std::int64_t i = 0; i < count; ++i) ticks.push_back(start + std::llround(static_cast<double>(i) / rate / unit));
  return {ticks, start + std::llround(static_cast<double>(count) / rate / unit), tick, {}};
}

TEST(FrameTimes, TheContainersClockDoesNotMatter) {
  for (const double rate : {24000.0 / 1001, 24.0, 25.0, 30000.0 / 1001, 30.0, 48.0, 50.0, 60000.0 / 1001, 60.0, 120.0})
    for (const Tick tick : {Tick{1, 1000}, Tick{1, 90000}, Tick{1, 12800}, Tick{1001, 120000}})
      for (const std::int64_t start : {0, -3, 123457}) {
        const FrameTimes times = stamped(400, rate, tick, start);
        // 1001/120000 s is an exact clock of the NTSC rates only.
        if (tick.numerator == 1001 && std::abs(rate * 1001 / 1000 - std::round(rate * 1001 / 1000)) > 1e-9) continue;
        EXPECT_EQ(shown(times), shown(FrameTimes(400, rate))) << rate << " " << tick.denominator << " " << start;
        EXPECT_NEAR(times.rate(), rate, 1e-9);
      }
}

TEST(FrameTimes, VariableRatesGoByTheirTimes) {
  // 0, 1/24, a pause until 10/24, two frames in one slot, the last held for three slots.
  const FrameTimes times({0, 40, 417, 430, 460}, 585, {1, 1000}, {});
  EXPECT_EQ(shown(times), (std::vector<std::int64_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 4, 4}));
  EXPECT_EQ(times.slots(), 14);
  EXPECT_NEAR(times.rate(), 5 / 0.585, 1e-9);
}

TEST(FrameTimes, LostFramesOfAConstantRateAreHeld) {
  const FrameTimes times({0, 1, 2, 5, 6}, 7, {1, 24}, {});
  EXPECT_EQ(shown(times), (std::vector<std::int64_t>{0, 1, 2, 2, 2, 3, 4}));
}

TEST(FrameTimes, RatesThatTheContainerSuggests) {
  // 17 frames a second in milliseconds: every tie falls as it would with exact times.
  std::vector<std::int64_t> ticks;
  for (int i = 0; i < 100; ++i) ticks.push_back(std::llround(i * 1000.0 / 17));
  EXPECT_EQ(shown(FrameTimes(ticks, 5882, {1, 1000}, {17})), shown(FrameTimes(100, 17)));
}

TEST(FrameTimes, OneFrame) {
  EXPECT_EQ(FrameTimes({5}, 6, {1, 24}, {}).slots(), 1);
  EXPECT_EQ(FrameTimes({5}, 6, {1, 60}, {}).slots(), 0);
  EXPECT_EQ(FrameTimes().slots(), 0);
  EXPECT_EQ(FrameTimes().size(), 0u);
}

}  // namespace h3::test
