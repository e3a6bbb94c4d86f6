// A real Slurm on this machine for the tests: munged, slurmctld and one slurmd with more processors than there are, all
// in a folder of their own and on free ports, gone with the object. What cannot be started says why.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/process.h"

namespace h3::test {

class SlurmCluster {
 public:
  SlurmCluster();
  ~SlurmCluster();
  // Why it does not run, or "".
  const std::string& reason() const { return reason_; }

  // Runs a Slurm command ("squeue ...") to its end.
  Result command(const Words& words) const;
  // Hands a job script with its arguments to sbatch and returns the job's number. Its output goes to
  // FOLDER/job-NUMBER.out, that of an array's task to FOLDER/job-NUMBER_TASK.out.
  std::string submit(const std::filesystem::path& folder, const Words& options_and_script,
                     const std::map<std::string, std::string>& environment = {}) const;
  // How often a job, or one task of an array ("7_1"), was put back into the queue.
  int restarts(const std::string& job) const;
  // Waits until nothing of a job is in the queue any more; the final state of each of its tasks ("COMPLETED").
  std::vector<std::string> wait(const std::string& job, double limit = 150) const;
  // Whether Slurm's srun has this launch interface ("pmix").
  bool has_mpi(const std::string& kind) const;

 private:
  std::string start();
  void configure(const std::string& host) const;

  TemporaryFolder folder_;
  std::unique_ptr<Process> munge_, controller_, node_;
  std::string reason_;
};

}  // namespace h3::test
