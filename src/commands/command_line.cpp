#include "commands/command_line.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/names.h"

namespace h3 {

namespace po = boost::program_options;

namespace {

// A word such as seed=7 or output.wav=true; a path with an equals sign in it is spelled with its folder: ./a=b.json.
bool is_override(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

[[noreturn]] void unknown_option(const po::options_description& options, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  const std::vector<std::string_view> views(known.begin(), known.end());
  throw UserError(name, "", "", "is not an option of this command" + did_you_mean(name, views));
}

}  // namespace

CommandLine::CommandLine(const CommandHelp& help, const po::options_description& options,
                         const std::vector<std::string>& words, bool overrides)
    : help_(help), options_("Options", 100) {
  for (const auto& option : options.options()) options_.add(option);
  po::options_description common;
  common.add_options()("help,h", "print this help")("log-level", po::value<std::string>()->value_name("LEVEL"),
                                                    "trace, debug, info (default), warning, error or off")(
      "quiet", "print warnings and errors only")("json-log", po::value<std::string>()->value_name("FILE"),
                                                 "also log one JSON object a line to FILE");
  for (const auto& option : common.options()) options_.add(option);
  try {
    const auto parsed = po::command_line_parser(words)
                            .options(options_)
                            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                            .allow_unregistered()
                            .run();
    for (const auto& option : parsed.options)
      if (option.unregistered) unknown_option(options_, option.original_tokens.at(0));
    po::store(parsed, values_);
    for (const std::string& word : po::collect_unrecognized(parsed.options, po::include_positional))
      (overrides && is_override(word) ? overrides_ : words_).push_back(word);
    po::notify(values_);
  } catch (const po::error& e) {
    throw UserError("h3render " + help_.name, "", "", e.what());
  }
}

std::vector<std::int64_t> counts_of(const std::string& text, const std::string& option, std::int64_t least) {
  std::vector<std::int64_t> counts;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    std::int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc() || n < least || (next != end && *next != ','))
      throw UserError(option, "", text, fmt::format("whole numbers from {} up, separated by commas", least));
    counts.push_back(n);
    if (next == end) return counts;
    at = next + 1;
  }
}

std::string CommandLine::required(const std::string& option) const {
  if (!has(option)) throw UserError("h3render " + help_.name, "--" + option, "", "is missing");
  return get<std::string>(option);
}

LogOptions CommandLine::log() const {
  LogOptions log;
  log.level = get_or<std::string>("log-level", "info");
  log.quiet = has("quiet");
  log.json_file = get_or<std::string>("json-log", "");
  return log;
}

std::string CommandLine::help_text() const {
  std::ostringstream out;
  out << "h3render " << help_.name << ": " << help_.summary << "\n\nUsage: h3render " << help_.name << " "
      << help_.usage << "\n\n"
      << help_.description << "\n\n"
      << options_;
  if (!help_.more.empty()) out << "\n" << help_.more << "\n";
  out << "\nExamples:\n";
  for (const std::string& example : help_.examples) out << "  " << example << "\n";
  return out.str();
}

}  // namespace h3
