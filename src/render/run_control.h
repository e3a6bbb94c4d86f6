// What can end or interrupt a run from outside its scenes: signals, limits, the watchdog. One object a run.
#pragma once

#include <optional>
#include <stdexcept>

#include "parallel/group_bell.h"
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
  // Collective over the world.
  explicit RunControl(Session& session);
  // Collective over the group, where its ranks are together: throws RunStopped on all of them when any rank of the run
  // has a reason; another group's reason arrives a moment later. `where` tells the watchdog how far the run is.
  void boundary(const std::string& where);
  // Collective over the group, where its ranks are together: whether the next boundary() will throw, so that the state
  // is kept before it.
  bool stops_here();
  // Whether this rank has a reason, remembered for the next boundary. Any thread may ask: work that ranks do apart,
  // such as reading weights, is cut short and all ranks meet at a boundary.
  bool wants_stop() { return stop_.wanted(); }
  // As boundary(), collective over the world: before groups of ranks go different ways.
  void world_boundary(const std::string& where);
  // This group is done: returns when all groups are. A reason to stop that reaches this one meanwhile stops the others.
  // Collective over the world.
  void wait_for_groups();
  void step_begins() { stop_.step_begins(); }
  // Seconds of the slowest rank.
  void step_took(double seconds);
  void scene_begins();
  // What follows is shorter than a step and may use the time that is left.
  void steps_are_over() { stop_.forget_steps(); }
  // No progress is expected: loading, waiting for other runs.
  void pause() { watchdog_.pause(); }
  void progress(const std::string& where) { watchdog_.progress(where); }

 private:
  StopReason agree();

  Session& session_;
  std::optional<GroupBell> bell_;  // on the first rank of each of several groups
  StopControl stop_;
  Watchdog watchdog_;
  StopReason agreed_ = StopReason::none;
};

}  // namespace h3
