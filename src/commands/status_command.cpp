// h3render status
#include <iostream>

#include "base/error.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "render/status.h"

namespace h3 {

static CommandHelp status_help() {
  return {"status",
          "tells from an output folder's files which scenes are done, running, failed or waiting",
          "DIR [--json]",
          "Reads manifests, claims, failure records and checkpoints; no run needs to answer. Running scenes show step, "
          "seconds\n"
          "a step and the time left.",
          {"h3render status out", "h3render status out --json"},
          ""};
}

int run_status(const std::vector<std::string>& words) {
  boost::program_options::options_description options;
  options.add_options()("json", "print JSON");
  const CommandLine line(status_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.words().size() != 1) throw UserError("h3render status", "", "", "takes one output folder");
  const StatusReport report = collect_status(line.words()[0]);
  std::cout << (line.has("json") ? to_json(report).dump(2) + "\n" : text_of(report));
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
