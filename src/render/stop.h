// When a run has to stop before it is done: a signal, a time limit or a halt file, on any one rank. All ranks find out
// together at a step boundary (agree). Where the time left is shorter than the rest of a step, a thread ends the
// process at once, on the last checkpoint. A second signal ends it at once, too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "parallel/communicator.h"
#include "render/stop_signals.h"

namespace h3 {

// In the order of precedence when ranks have different ones.
enum class StopReason : std::uint8_t { none = 0, halt_file = 1, time_limit = 2, signal = 3 };
// "a signal asked for it", ...; "" for none.
std::string_view text_of(StopReason reason);

// Seconds of "90", "2.5", "10:00" (minutes), "1:30:00" (hours) or "2-00:00:00" (days). Throws UserError naming
// `option`.
double parse_duration(const std::string& text, const std::string& option);

struct StopOptions {
  double max_seconds = 0;           // from construction on; 0: no limit of this kind
  bool slurm_limit = true;          // also until SLURM_JOB_END_TIME, where Slurm sets it
  std::filesystem::path halt_file;  // stop where this exists; "": none
  double reserve_seconds = 3;       // kept for leaving
  // Called by the watching thread when the time is too short to go on; must not return. Empty: one line to standard
  // error and exit code 75.
  std::function<void(const std::string& why)> leave;
};

// One object a run. Signals count that came while it or another StopSignals stood.
class StopControl {
 public:
  explicit StopControl(StopOptions options);
  ~StopControl();
  StopControl(const StopControl&) = delete;
  StopControl& operator=(const StopControl&) = delete;

  // Whether this process knows a reason to stop now: also time_limit when the next step, predicted by the longest one
  // measured, does not fit into the time left. Costs a look at the halt file; any moment between steps or stages.
  StopReason requested() const;

  // As requested(), and remembered for the next agree(). Any thread may ask: work that ranks do apart, such as reading
  // weights, is cut short and all ranks meet where they agree.
  bool wanted();

  // Collective: the highest of all ranks' reasons, and of those they know from elsewhere. Call where ranks are
  // together: before each step, between stages.
  StopReason agree(Communicator& communicator, StopReason heard = StopReason::none);

  // Around each step; `seconds` is what it took on the slowest rank. What passed here since it began counts too.
  void step_begins();
  void step_took(double seconds);
  // Steps of another scene may take longer or shorter.
  void forget_steps();

  // Nothing where there is no limit.
  std::optional<double> seconds_left() const;

 private:
  void watch();
  std::string why_leave() const;
  double now() const;

  StopOptions options_;
  StopSignals signals_;
  std::atomic<StopReason> wanted_ = StopReason::none;
  std::optional<double> deadline_;  // by now()
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  double longest_step_ = 0;
  std::optional<double> step_started_;
  bool ending_ = false;
  std::thread thread_;
};

// Seconds until SLURM_JOB_END_TIME by this machine's wall clock; nothing where it is not set or not in the future.
std::optional<double> slurm_seconds_left();

}  // namespace h3
