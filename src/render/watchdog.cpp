#include "render/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/helper_thread.h"

namespace h3 {

namespace {

void end_process(const std::string& message) {
  const std::string line = message + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(ExitCode::failure));
}

}  // namespace

Watchdog::Watchdog(WatchdogOptions options) : options_(std::move(options)) {
  if (!options_.end) options_.end = end_process;
  thread_ = start_helper_thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::progress(std::string_view where) {
  const std::lock_guard lock(mutex_);
  where_ = where;
  silent_seconds_ = 0;
  paused_ = false;
}

void Watchdog::step_took(double seconds) {
  const std::lock_guard lock(mutex_);
  longest_step_ = std::max(longest_step_, seconds);
  silent_seconds_ = 0;
  paused_ = false;
}

void Watchdog::forget_steps() {
  const std::lock_guard lock(mutex_);
  longest_step_ = 0;
}

void Watchdog::pause() {
  const std::lock_guard lock(mutex_);
  silent_seconds_ = 0;
  paused_ = true;
}

double Watchdog::allowed() const {
  constexpr double kSteps = 10;
  if (options_.timeout_seconds > 0) return options_.timeout_seconds;
  if (longest_step_ == 0) return options_.first_seconds;
  return std::max(options_.least_seconds, kSteps * longest_step_);
}

double Watchdog::allowed_seconds() const {
  const std::lock_guard lock(mutex_);
  return allowed();
}

void Watchdog::watch() {
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;
  constexpr double kLongestGap = 5;  // an interval that took longer was spent stopped, not waiting
  const double shortest = options_.timeout_seconds > 0 ? options_.timeout_seconds : options_.least_seconds;
  const double interval = std::clamp(shortest / 20, 0.005, 1.0);
  std::unique_lock lock(mutex_);
  auto last = Clock::now();
  while (!changed_.wait_for(lock, Seconds(interval), [&] { return ending_; })) {
    const double passed = Seconds(Clock::now() - last).count();
    last = Clock::now();
    if (paused_) continue;
    silent_seconds_ += std::min(passed, kLongestGap);
    if (silent_seconds_ < allowed()) continue;
    const std::string message =
        fmt::format("{}: no progress for {:.0f} s (last: {}); ending, since this or another rank hangs", options_.who,
                    silent_seconds_, where_.empty() ? "none" : where_);
    paused_ = true;
    lock.unlock();
    options_.end(message);
    lock.lock();
  }
}

}  // namespace h3
