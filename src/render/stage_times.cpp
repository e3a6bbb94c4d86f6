#include "render/stage_times.h"

namespace h3 {

void StageTimes::add(const std::string& stage, double seconds) {
  for (auto& [name, sum] : stages_) {
    if (name != stage) continue;
    sum += seconds;
    return;
  }
  stages_.emplace_back(stage, seconds);
}

double StageTimes::of(const std::string& stage) const {
  for (const auto& [name, sum] : stages_)
    if (name == stage) return sum;
  return 0;
}

nlohmann::json StageTimes::json() const {
  nlohmann::json j = nlohmann::json::object();
  const double whole = total();
  double other = whole;
  for (const auto& [name, sum] : stages_) {
    j[name] = sum;
    other -= sum;
  }
  j["other"] = other;
  j["total"] = whole;
  return j;
}

double StageTimer::stop() {
  if (!running_) return 0;
  running_ = false;
  range_.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  times_.add(stage_, seconds);
  return seconds;
}

}  // namespace h3
