// Wall time of a run by stage. Stages do not nest, so their sum plus `other` is the total.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/named_range.h"

namespace h3 {

class StageTimes {
 public:
  StageTimes() : start_(Clock::now()) {}
  // Adds seconds to a stage; stages keep the order of their first mention.
  void add(const std::string& stage, double seconds);
  double of(const std::string& stage) const;
  double total() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // {"text": ..., ..., "other": ..., "total": ...}, seconds; the parts add up to the total.
  nlohmann::json json() const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  std::vector<std::pair<std::string, double>> stages_;
};

// Times one stage from construction to destruction (or `stop`).
class StageTimer {
 public:
  StageTimer(StageTimes& times, std::string stage)
      : times_(times), stage_(std::move(stage)), range_(stage_.c_str()), start_(std::chrono::steady_clock::now()) {}
  ~StageTimer() { stop(); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  // Seconds of the stage; later calls add nothing.
  double stop();

 private:
  StageTimes& times_;
  std::string stage_;
  std::optional<NamedRange> range_;
  std::chrono::steady_clock::time_point start_;
  bool running_ = true;
};

}  // namespace h3
