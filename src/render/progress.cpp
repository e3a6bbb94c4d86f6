#include "render/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/log.h"

namespace h3 {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

Progress::Progress(bool visible, bool alone)
    : visible_(visible), terminal_(visible && alone && ::isatty(STDERR_FILENO)) {}

void Progress::step(const StepReport& report) {
  if (!visible_) return;
  // The mean of the steps so far tells the rest better than the last one alone.
  step_seconds_ += (report.seconds - step_seconds_) / static_cast<double>(report.step);
  const double left = step_seconds_ * static_cast<double>(report.steps - report.step);
  if (terminal_) return bar("step", report.step, report.steps, left);
  const std::string device = report.device_memory > 0 ? ", on the GPU " + bytes_text(report.device_memory) : "";
  spdlog::info("step {}/{}: {}, exchange {:.3f} to {:.3f} s ({} received), memory at most {}{}, {} left", report.step,
               report.steps, duration_text(report.seconds), report.exchange_least, report.exchange_most,
               bytes_text(report.bytes), bytes_text(report.host_memory), device, duration_text(left));
}

void Progress::decode(std::int64_t frames, std::int64_t of) {
  if (!visible_) return;
  if (terminal_) return bar("frame", frames, of, -1);
  spdlog::debug("frames {}/{} decoded", frames, of);
}

void Progress::bar(const std::string& what, std::int64_t done, std::int64_t of, double seconds_left) {
  constexpr std::int64_t kWidth = 40;
  const auto filled = static_cast<std::size_t>(of > 0 ? kWidth * done / of : kWidth);
  std::string line =
      fmt::format("\r[{}{}] {} {}/{}", std::string(filled, '#'), std::string(kWidth - filled, '.'), what, done, of);
  if (seconds_left >= 0) line += ", " + duration_text(seconds_left) + " left";
  std::fprintf(stderr, "%s\033[K", line.c_str());
  bar_open_ = true;
  if (done == of) end_bar();
}

void Progress::end_bar() {
  if (bar_open_) std::fputc('\n', stderr);
  bar_open_ = false;
}

}  // namespace h3
