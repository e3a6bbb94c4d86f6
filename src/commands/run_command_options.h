// The options of a run as command-line options, shared by the commands that take them.
#pragma once

#include <boost/program_options.hpp>

#include "commands/command_line.h"
#include "render/run_options.h"

namespace h3 {

// Adds the named options (all of them when `only` is empty).
void add_run_options(boost::program_options::options_description& description,
                     const std::vector<std::string>& only = {});

// Options from overrides of the form option=value, then from flags, which win. Overrides that are no option of a run
// are left in `scene_overrides`.
RunOptions run_options_from(const CommandLine& line, std::vector<std::string>& scene_overrides);

// The table of scene keys for --help.
std::string scene_keys_text();

}  // namespace h3
