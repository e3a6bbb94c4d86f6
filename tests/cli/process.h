// A program as the tests start it: its output goes into files, its end is waited for with a limit, and all processes
// of the run are found again by a mark in their environment, since mpirun gives every rank a process group of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace h3::test {

using Words = std::vector<std::string>;

struct Result {
  int exit_code = -1;  // 128 + number of the signal that ended it
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;
};

struct Surroundings {
  // Beside the test's own. Unless it names another XDG_CACHE_HOME, nothing that earlier runs encoded is found.
  std::map<std::string, std::string> environment;
  std::filesystem::path folder = ".";  // to start in
  double limit = 180;                  // seconds; the run is killed then
};

class Process {
 public:
  // Starts words[0], looked up in PATH. What mpirun needs on a machine with fewer cores than ranks, or as root, is
  // in the environment.
  explicit Process(const Words& words, const Surroundings& surroundings = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool running();
  std::string err() const;  // so far
  // Waits until standard error holds `text`; false when the process ended or the limit passed before that.
  bool wait_for_err(const std::string& text);
  // All living processes of the run, and the one that is a rank of its MPI world. A rank that is not there throws
  // std::runtime_error: never a pid that kill() would take for everybody.
  std::vector<pid_t> members() const;
  pid_t rank(int number) const;
  // Waits for the end. A run over its limit is killed and is a test failure.
  Result wait();

 private:
  double age() const;
  void kill_all();

  TemporaryFolder output_;
  Words words_;
  double limit_;
  std::string mark_;
  double started_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

// Starts, waits, returns.
Result run(const Words& words, const Surroundings& surroundings = {});

// Seconds of a clock that never jumps.
double now();

}  // namespace h3::test
