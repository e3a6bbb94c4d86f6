#include "render/stop.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/helper_thread.h"

namespace h3 {

namespace {

void leave_now(const std::string& why) {
  const std::string line = why + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(ExitCode::stopped));
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

std::string_view text_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "";
    case StopReason::halt_file:
      return "a halt file asked for it";
    case StopReason::time_limit:
      return "the time left is too short";
    case StopReason::signal:
      return "a signal asked for it";
  }
  return "";
}

double parse_duration(const std::string& text, const std::string& option) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const auto wrong = [&] { return UserError(option, "", text, "seconds, MM:SS, HH:MM:SS or D-HH:MM:SS"); };
  std::string_view rest = text;
  double total = 0;
  const std::size_t dash = rest.find('-');
  if (dash != std::string_view::npos) {
    const auto days = number_of(rest.substr(0, dash));
    if (!days) throw wrong();
    total = *days * kDay;
    rest.remove_prefix(dash + 1);
  }
  const auto colons = std::count(rest.begin(), rest.end(), ':');
  if (colons > 2 || (dash != std::string_view::npos && colons != 2)) throw wrong();
  double unit = colons == 2 ? kHour : colons == 1 ? kMinute : 1;
  for (auto left = colons; left >= 0; --left, unit /= 60) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const auto part = number_of(rest.substr(0, end));
    if (!part || (left != colons && *part >= 60)) throw wrong();
    total += *part * unit;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!(total > 0)) throw UserError(option, "", text, "must be more than 0");
  return total;
}

std::optional<double> slurm_seconds_left() {
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  const auto end = text ? number_of(text) : std::nullopt;
  if (!end) return std::nullopt;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return *end > now ? std::optional(*end - now) : std::nullopt;
}

StopControl::StopControl(StopOptions options) : options_(std::move(options)) {
  // Limits are turned into the steady clock once, so that a wall clock that is set later changes nothing.
  if (options_.max_seconds > 0) deadline_ = now() + options_.max_seconds;
  if (options_.slurm_limit)
    if (const auto left = slurm_seconds_left()) deadline_ = std::min(deadline_.value_or(1e300), now() + *left);
  if (!options_.leave) options_.leave = leave_now;
  if (deadline_) thread_ = start_helper_thread([this] { watch(); });
}

StopControl::~StopControl() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

double StopControl::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<double> StopControl::seconds_left() const {
  if (!deadline_) return std::nullopt;
  return *deadline_ - now();
}

StopReason StopControl::requested() const {
  if (StopSignals::came()) return StopReason::signal;
  const auto left = seconds_left();
  if (left) {
    const std::lock_guard lock(mutex_);
    if (*left < longest_step_ + options_.reserve_seconds) return StopReason::time_limit;
  }
  std::error_code error;
  if (!options_.halt_file.empty() && std::filesystem::exists(options_.halt_file, error)) return StopReason::halt_file;
  return StopReason::none;
}

bool StopControl::wanted() {
  if (wanted_ == StopReason::none) wanted_ = requested();
  return wanted_ != StopReason::none;
}

StopReason StopControl::agree(Communicator& communicator, StopReason heard) {
  wanted();
  const StopReason reason = std::max(wanted_.load(), heard);
  return static_cast<StopReason>(communicator.agree_max(static_cast<std::int64_t>(reason)));
}

void StopControl::step_begins() {
  const std::lock_guard lock(mutex_);
  step_started_ = now();
}

void StopControl::step_took(double seconds) {
  const std::lock_guard lock(mutex_);
  const double here = step_started_ ? now() - *step_started_ : 0;
  longest_step_ = std::max({longest_step_, seconds, here});
  step_started_.reset();
}

void StopControl::forget_steps() {
  const std::lock_guard lock(mutex_);
  longest_step_ = 0;
  step_started_.reset();
}

// Why nothing that runs now can end in time, or "".
std::string StopControl::why_leave() const {
  const double rest = step_started_ ? std::max(0.0, longest_step_ - (now() - *step_started_)) : 0;
  const double left = *deadline_ - now();
  if (left >= rest + options_.reserve_seconds) return "";
  if (!step_started_) return fmt::format("{:.0f} s are left: leaving on the last checkpoint", std::max(0.0, left));
  return fmt::format("{:.0f} s are left and this step needs {:.0f} more: leaving on the last checkpoint",
                     std::max(0.0, left), rest);
}

void StopControl::watch() {
  constexpr std::chrono::milliseconds kInterval(200);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [&] { return ending_; })) {
    const std::string why = why_leave();
    if (why.empty()) continue;
    lock.unlock();
    options_.leave(why);
    lock.lock();
  }
}

}  // namespace h3
