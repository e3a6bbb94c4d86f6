// A run: from options and scene files to rendered scenes and the exit code.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "parallel/cluster.h"
#include "render/run_options.h"

namespace h3 {

struct RunRequest {
  RunOptions options;
  std::vector<std::string> scenes;
  std::vector<std::string> overrides;  // "key=value"
  bool quiet = false;
};

// Collective. Validates everything first; throws UserError on every rank alike for bad input, RunError for what ends
// the run. Returns the exit code otherwise.
ExitCode run_scenes(Cluster& cluster, const RunRequest& request);

}  // namespace h3
