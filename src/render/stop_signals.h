// The signals that ask a run to stop (SIGTERM, SIGINT, SIGUSR1, SIGUSR2). They are caught from before MPI starts, so
// that none that comes while a run starts ends it with the wrong exit code. A second one ends the process at once.
#pragma once

namespace h3 {

// The handlers stand while any object lives; the first one forgets earlier signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether a signal came.
  static bool came();
};

}  // namespace h3
