#include "media/frame_times.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace h3 {

static constexpr double slots_per_second = 24;

FrameTimes::FrameTimes(std::int64_t count, double rate) {
  H3_CHECK(count > 0 && rate > 0, fmt::format("{} frames at {}", count, rate));
  for (std::int64_t i = 0; i <= count; ++i) positions_.push_back(static_cast<double>(i) * slots_per_second / rate);
}

bool FrameTimes::take_constant_rate(const std::vector<std::int64_t>& ticks, std::int64_t end, Tick tick, double rate) {
  const double ticks_a_frame = static_cast<double>(tick.denominator) / static_cast<double>(tick.numerator) / rate;
  constexpr double rounding = 1.001;  // ticks by which the clock's rounding may move a frame against the first
  const bool is_rate = std::isfinite(ticks_a_frame) && rate > 0;
  if (!is_rate || ticks.size() < 2 || (ticks_a_frame < 2 * rounding && ticks_a_frame != std::round(ticks_a_frame)))
    return false;
  std::vector<double> positions;
  double last = 0;
  for (const std::int64_t t : ticks) {
    const auto passed = static_cast<double>(t - ticks.front());
    const double number = std::round(passed / ticks_a_frame);
    if (std::abs(passed - number * ticks_a_frame) > std::min(rounding, ticks_a_frame / 4)) return false;
    positions.push_back(number * slots_per_second / rate);
    last = number;
  }
  const double held = std::round(static_cast<double>(end - ticks.back()) / ticks_a_frame);
  positions.push_back((last + std::max(1.0, held)) * slots_per_second / rate);
  positions_ = std::move(positions);
  return true;
}

FrameTimes::FrameTimes(const std::vector<std::int64_t>& ticks, std::int64_t end, Tick tick,
                       const std::vector<double>& rates) {
  H3_CHECK(!ticks.empty() && std::is_sorted(ticks.begin(), ticks.end()) && end >= ticks.back());
  // A clock of whole milliseconds fits several rates over a short clip; the usual ones come first.
  std::vector<double> candidates{24000.0 / 1001,  24, 25, 30000.0 / 1001, 30, 48, 50, 60000.0 / 1001, 60,
                                 120000.0 / 1001, 120};
  candidates.insert(candidates.end(), rates.begin(), rates.end());
  for (const double rate : candidates)
    if (take_constant_rate(ticks, end, tick, rate)) return;
  const auto position = [&](std::int64_t t) {
    return static_cast<double>(t - ticks.front()) * static_cast<double>(tick.numerator) * slots_per_second /
           static_cast<double>(tick.denominator);
  };
  for (const std::int64_t t : ticks) positions_.push_back(position(t));
  positions_.push_back(position(end));
}

std::int64_t FrameTimes::first_slot(std::size_t i) const {
  return static_cast<std::int64_t>(std::floor(positions_.at(i) + 0.5));
}

double FrameTimes::rate() const {
  const double length = positions_.empty() ? 0 : positions_.back();
  return length > 0 ? static_cast<double>(size()) * slots_per_second / length : 0;
}

}  // namespace h3
