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

}  // namespace h3
