// Seconds of the two clocks: one that never jumps, for durations, and the wall's, which files and other machines know.
#pragma once

#include <chrono>

namespace h3 {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace h3
