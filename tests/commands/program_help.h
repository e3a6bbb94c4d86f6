// What the program says of its commands' options: the text of `COMMAND --help`, read back. Tests compare documents with
// this rather than with the declarations, since the help is what users see.
#pragma once

#include <map>
#include <string>

namespace h3::test {

struct OptionHelp {
  std::string value;          // "FILE", "auto|cpu|cuda"; empty for flags
  std::string default_value;  // empty where the help states none
};

// Options by name (without dashes) of a help text's list of options.
std::map<std::string, OptionHelp> parse_help(const std::string& text);

// Options of a command of the program, from its help. Fails the test where the command does not print any.
std::map<std::string, OptionHelp> options_of(const std::string& command);

}  // namespace h3::test
