#include "render/run_control.h"

#include <chrono>
#include <thread>

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
    : session_(session), stop_(stop_options(session.options())), watchdog_(watchdog_options(session)) {
  if (session.group().count() > 1 && session.first()) bell_.emplace(session.group().leaders());
  session.set_interruption({[this] { return wants_stop(); },
                            [this](const std::string& where) {
                              world_boundary(where);
                              pause();
                            }});
}

StopReason RunControl::agree() {
  const auto heard = bell_ ? static_cast<StopReason>(bell_->heard()) : StopReason::none;
  const StopReason reason = stop_.agree(session_.communicator(), heard);
  if (bell_ && reason != StopReason::none) bell_->ring(static_cast<int>(reason));
  return reason;
}

bool RunControl::stops_here() {
  if (agreed_ == StopReason::none) agreed_ = agree();
  return agreed_ != StopReason::none;
}

void RunControl::boundary(const std::string& where) {
  watchdog_.progress(where);
  if (stops_here()) throw RunStopped(agreed_);
}

void RunControl::world_boundary(const std::string& where) {
  watchdog_.progress(where);
  agreed_ = stop_.agree(session_.world());
  if (agreed_ != StopReason::none) throw RunStopped(agreed_);
}

void RunControl::wait_for_groups() {
  constexpr std::chrono::milliseconds kPause(50);
  if (session_.group().count() == 1) return;
  watchdog_.pause();
  while (true) {
    agree();
    const bool done = !bell_ || bell_->all_done();
    // The first rank alone knows; the others wait for it here.
    if (session_.communicator().agree_max(done ? 0 : 1) == 0) break;
    std::this_thread::sleep_for(kPause);
  }
  if (bell_) bell_->close();
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
