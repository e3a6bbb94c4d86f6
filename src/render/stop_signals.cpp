#include "render/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "base/error.h"

namespace h3 {

namespace {

constexpr std::array kSignals{SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

// One request often arrives twice, from the launcher and from the batch system; only a later one is a second request.
constexpr std::int64_t kSameRequestNs = 200'000'000;

std::atomic<std::int64_t> first_signal_ns{0};  // of the monotonic clock; 0: none
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
std::atomic<int> objects{0};
std::array<struct sigaction, kSignals.size()> actions_before;

// Async-signal-safe: a clock, atomics, write and _exit.
void on_signal(int) {
  const int errno_before = errno;
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const std::int64_t now = std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  std::int64_t first = 0;
  if (!first_signal_ns.compare_exchange_strong(first, now) && now - first > kSameRequestNs) {
    static constexpr char kText[] = "second signal: leaving at once\n";
    (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(static_cast<int>(ExitCode::stopped));
  }
  errno = errno_before;
}

}  // namespace

StopSignals::StopSignals() {
  if (objects++ > 0) return;
  first_signal_ns = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &actions_before[i]);
}

StopSignals::~StopSignals() {
  if (--objects > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &actions_before[i], nullptr);
}

bool StopSignals::came() {
  return first_signal_ns != 0;
}

}  // namespace h3
