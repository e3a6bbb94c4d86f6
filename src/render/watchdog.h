// Ends this process when its main thread hangs, as in a collective that another rank never enters: the launcher sees
// dead ranks, not silent ones. Time in which the whole process was stopped (a suspended job) does not count.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace h3 {

struct WatchdogOptions {
  // Seconds without progress; 0: ten times the longest step measured, at least `least_seconds`, and `first_seconds`
  // while no step was measured.
  double timeout_seconds = 0;
  double least_seconds = 120, first_seconds = 1800;
  std::string who = "this process";  // "rank 3 on node7", for the message
  // Called once by the watching thread with the message. Empty: the message to standard error and exit code 1.
  std::function<void(const std::string& message)> end;
};

class Watchdog {
 public:
  // Paused until the first progress().
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The main thread got somewhere: "step 5", "frames 40". Ends a pause. Cheap; call it as often as there is something.
  void progress(std::string_view where);
  // A whole step was done in so many seconds (progress too).
  void step_took(double seconds);
  // Steps of another scene may take longer or shorter.
  void forget_steps();
  // Nothing is watched until the next progress(): loading, waiting for other runs.
  void pause();

  // Seconds without progress that are allowed now.
  double allowed_seconds() const;

 private:
  void watch();
  double allowed() const;

  WatchdogOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string where_;
  double silent_seconds_ = 0, longest_step_ = 0;
  bool paused_ = true, ending_ = false;
  std::thread thread_;
};

}  // namespace h3
