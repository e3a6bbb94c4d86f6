// What can end or interrupt a run from outside its scenes: signals, limits, the watchdog. One object a run.
#pragma once

#include <stdexcept>

#include "render/session.h"
#include "render/stop.h"
#include "render/watchdog.h"

namespace h3 {

// The run has to stop; thrown on every rank at the same boundary. The scene keeps its last checkpoint.
class RunStopped : public std::runtime_error {
 public:
  explicit RunStopped(StopReason reason) : std::runtime_error(std::string(text_of(reason))) {}
};

class RunControl {
 public:
  explicit RunControl(Session& session);
  // Collective, where ranks are together: throws RunStopped on all of them when any has a reason. `where` tells the
  // watchdog how far the run is.
  void boundary(const std::string& where);
  void step_begins() { stop_.step_begins(); }
  // Seconds of the slowest rank.
  void step_took(double seconds);
  void scene_begins();
  // No progress is expected: loading, waiting for other runs.
  void pause() { watchdog_.pause(); }
  void progress(const std::string& where) { watchdog_.progress(where); }

 private:
  Session& session_;
  StopControl stop_;
  Watchdog watchdog_;
};

}  // namespace h3
