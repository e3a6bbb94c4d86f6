// The program's log: spdlog to standard error, one line a fact. Ranks other than 0 log warnings and errors only.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace h3 {

struct LogOptions {
  std::string level = "info";  // trace, debug, info, warning, error, off
  bool quiet = false;          // warnings and errors only
  std::string json_file;       // also one JSON object a line into this file; empty: none
};

// Sets up the default logger of this process. Throws UserError for an unknown level or a file that cannot be opened.
void start_log(const LogOptions& options, int rank);

// The ranks of a run were cut into groups: lines name the group ("group 2 of 3"), and the rank that `speaks` for it
// logs as rank 0 does, into the same JSON file too.
void log_for_group(const std::string& group, bool speaks);

}  // namespace h3
