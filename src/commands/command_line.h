// The command line of one command: options (Boost.Program_options), positional words, and `key=value` overrides. Help
// is made from the same declarations, so it cannot name an option that does not exist.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace h3 {

struct CommandHelp {
  std::string name, summary;
  std::string usage;                  // after "h3render NAME "
  std::string description;            // paragraphs
  std::vector<std::string> examples;  // whole command lines
  std::string more;                   // printed last, e.g. the keys of a scene
};

class CommandLine {
 public:
  // `options` are the command's own; --help and the log's options are added. `overrides`: whether words of the form
  // key=value are overrides rather than positional words. Throws UserError for unknown options (with the nearest name),
  // missing or malformed values.
  CommandLine(const CommandHelp& help, const boost::program_options::options_description& options,
              const std::vector<std::string>& words, bool overrides = false);

  bool help_asked() const { return values_.count("help") != 0; }
  std::string help_text() const;
  bool has(const std::string& option) const { return values_.count(option) != 0; }
  template <typename T>
  T get(const std::string& option) const {
    return values_[option].as<T>();
  }
  template <typename T>
  T get_or(const std::string& option, T otherwise) const {
    return has(option) ? get<T>(option) : otherwise;
  }
  // The option's value; throws UserError when it was not given.
  std::string required(const std::string& option) const;
  const std::vector<std::string>& words() const { return words_; }
  const std::vector<std::string>& overrides() const { return overrides_; }
  LogOptions log() const;

 private:
  CommandHelp help_;
  boost::program_options::options_description options_;
  boost::program_options::variables_map values_;
  std::vector<std::string> words_, overrides_;
};

// Whole numbers from `least` up, separated by commas. Throws UserError naming the option otherwise.
std::vector<std::int64_t> counts_of(const std::string& text, const std::string& option, std::int64_t least);

// One command of the program. `run` returns the exit code and throws what base/error.h describes.
struct Command {
  std::string_view name, summary;
  int (*run)(const std::vector<std::string>& words);
};
const std::vector<Command>& all_commands();

}  // namespace h3
