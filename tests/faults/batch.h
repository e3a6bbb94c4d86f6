// A batch of small scenes that a fault test disturbs, and what an undisturbed run of it gives.
#pragma once

#include <map>

#include "cli/program.h"

namespace h3::test {

class Batch {
 public:
  // `count` scenes s0, s1, ... with seeds of their own.
  Batch(int count, int evaluations);
  fs::path folder() const { return folder_.path(); }
  fs::path out() const { return folder_.path() / "out"; }
  std::vector<std::string> names() const;
  // mpirun's words for a run of the batch.
  Words words(int ranks, const Words& options = {}) const;
  Result render(int ranks, const Words& options = {}) const;
  // The run without a disturbance, once for all tests: its hashes by scene.
  const std::map<std::string, Hashes>& undisturbed() const { return undisturbed_; }
  double undisturbed_seconds() const { return undisturbed_seconds_; }
  bool is_done() const;
  // Every manifest that is there tells the hashes of the undisturbed run.
  void expect_right_so_far() const;
  // All scenes are there, with those hashes, and no other file.
  void expect_complete() const;

 private:
  TemporaryFolder folder_;
  Json scenes_ = Json::array();
  std::map<std::string, Hashes> undisturbed_;
  double undisturbed_seconds_ = 0;
};

}  // namespace h3::test
