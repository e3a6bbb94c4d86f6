// How long a group's ranks stood still between two scenes: from the last sample of one to the first operation of the
// next. Files of the former are written meanwhile, claims taken, checkpoints looked for.
#pragma once

#include <chrono>
#include <optional>

namespace h3 {

class IdleTime {
 public:
  void work_begins();
  void work_ends();
  // Before the scene at work; 0 before the first.
  double last() const { return last_; }
  double total() const { return total_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> ended_;
  double last_ = 0, total_ = 0;
};

}  // namespace h3
