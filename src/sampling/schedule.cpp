#include "sampling/schedule.h"

#include <cmath>

#include "base/error.h"

namespace h3 {

static constexpr int kMaxEvaluations = 100000;

static Schedule with_timesteps(std::vector<float> sigmas) {
  Schedule schedule;
  for (std::size_t i = 0; i + 1 < sigmas.size(); ++i) schedule.timesteps.push_back(1.0f - sigmas[i]);
  schedule.sigmas = std::move(sigmas);
  return schedule;
}

std::vector<float> base_grid(int evaluations) {
  CHECK_GE(evaluations, 1);
  const int points = evaluations + 1;
  const float step = -1.0f / static_cast<float>(evaluations);
  std::vector<float> grid(static_cast<std::size_t>(points));
  // The first half is counted from the start and fused, the second from the end: what the reference's vector code does.
  for (int i = 0; i < points; ++i) {
    grid[static_cast<std::size_t>(i)] =
        i < points / 2 ? std::fma(step, static_cast<float>(i), 1.0f) : 0.0f - step * static_cast<float>(points - 1 - i);
  }
  return grid;
}

Schedule shifted_schedule(int evaluations, double shift, const std::string& where) {
  if (evaluations < 1 || evaluations > kMaxEvaluations) {
    throw UserError(where, "evaluations", std::to_string(evaluations), fmt::format("1 to {}", kMaxEvaluations));
  }
  if (!(shift > 0) || !std::isfinite(shift)) {
    throw UserError(where, "shift", fmt::format("{}", shift), "a positive number");
  }
  const auto s = static_cast<float>(shift);
  const auto s_minus_1 = static_cast<float>(shift - 1.0);
  std::vector<float> sigmas;
  for (const float b : base_grid(evaluations)) {
    const float sigma = (s * b) / (1.0f + s_minus_1 * b);
    if (sigmas.empty() || sigma != sigmas.back()) sigmas.push_back(sigma);
  }
  return with_timesteps(std::move(sigmas));
}

Schedule explicit_schedule(std::span<const double> sigmas, const std::string& where, const std::string& field) {
  if (sigmas.size() < 2) {
    throw UserError(where, field, fmt::format("{} values", sigmas.size()), "at least two values, the last one 0");
  }
  std::vector<float> values;
  for (std::size_t i = 0; i < sigmas.size(); ++i) {
    const bool last = i + 1 == sigmas.size();
    const auto value = static_cast<float>(sigmas[i]);
    const float above = i == 0 ? std::nextafter(1.0f, 2.0f) : values.back();
    if (!(last ? sigmas[i] == 0.0 : value > 0.0f) || !(value < above)) {
      throw UserError(where, fmt::format("{}[{}]", field, i), fmt::format("{}", sigmas[i]),
                      last ? "0 as the last value" : "values from 1 down, strictly decreasing, above 0 up to the last");
    }
    values.push_back(value);
  }
  return with_timesteps(std::move(values));
}

std::vector<double> audio_sigmas_for(std::span<const double> video_sigmas, double video_shift, double audio_shift) {
  std::vector<double> sigmas;
  for (const double sigma : video_sigmas) {
    const double b = sigma / (video_shift - (video_shift - 1.0) * sigma);
    sigmas.push_back(audio_shift * b / (1.0 + (audio_shift - 1.0) * b));
  }
  return sigmas;
}

SchedulePair pair_schedules(Schedule video, Schedule audio, const std::string& where) {
  if (video.evaluations() != audio.evaluations()) {
    throw UserError(where, "schedule",
                    fmt::format("{} evaluations of video, {} of audio", video.evaluations(), audio.evaluations()),
                    "equally many (a shift nearer to 1, or lists of equal lengths)");
  }
  return {std::move(video), std::move(audio)};
}

}  // namespace h3
