#include "render/run_control.h"

namespace h3 {

static StopOptions stop_options(const RunOptions& run) {
  StopOptions options;
  if (!run.max_time.empty()) options.max_seconds = parse_duration(run.max_time, "--max-time");
  options.halt_file = run.halt_file;
  return options;
}

static WatchdogOptions watchdog_options(Session& session) {
  WatchdogOptions options;
  options.timeout_seconds = static_cast<double>(session.options().hang_timeout);
  options.who = fmt::format("rank {} on {}", session.cluster().rank(), session.cluster().host());
  return options;
}

RunControl::RunControl(Session& session)
    : session_(session), stop_(stop_options(session.options())), watchdog_(watchdog_options(session)) {}

void RunControl::boundary(const std::string& where) {
  watchdog_.progress(where);
  const StopReason reason = stop_.agree(session_.communicator());
  if (reason != StopReason::none) throw RunStopped(reason);
}

void RunControl::step_took(double seconds) {
  stop_.step_took(seconds);
  watchdog_.step_took(seconds);
}

void RunControl::scene_begins() {
  stop_.forget_steps();
  watchdog_.forget_steps();
}

}  // namespace h3
