// Tells how a scene goes on: a bar with the time left on a terminal, otherwise one plain line a step.
#pragma once

#include <cstdint>
#include <string>

#include "render/denoise.h"

namespace h3 {

class Progress {
 public:
  // Prints nothing where it is not `visible`; a bar only where it is `alone` on the terminal.
  Progress(bool visible, bool alone);
  void step(const StepReport& report);
  void decode(std::int64_t frames, std::int64_t of);
  // Ends an unfinished bar, so that other lines start at the margin.
  void end_bar();

 private:
  void bar(const std::string& what, std::int64_t done, std::int64_t of, double seconds_left);

  bool visible_, terminal_;
  bool bar_open_ = false;
  double step_seconds_ = 0;
};

// "1.5 s", "2 min 05 s", "3 h 20 min".
std::string duration_text(double seconds);
// "512 B", "1.5 GiB".
std::string bytes_text(double bytes);

}  // namespace h3
