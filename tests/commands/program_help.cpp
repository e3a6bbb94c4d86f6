#include "commands/program_help.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "commands/command_line.h"

namespace h3::test {

namespace {

// "(=22)" of the value itself, or at the end of its explanation "(default 22)", or before it "info (default)".
std::string default_in(const std::string& value_mark, const std::string& text) {
  if (!value_mark.empty()) return value_mark;
  std::smatch match;
  if (std::regex_search(text, match, std::regex("\\(default ([^()]+)\\)$"))) return match[1];
  if (std::regex_search(text, match, std::regex("(\\S+) \\(default\\)"))) return match[1];
  return "";
}

// The lines of each option as one line, without the columns of the table.
std::vector<std::string> option_entries(const std::string& text) {
  std::vector<std::string> entries;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != "Options:") {
  }
  while (std::getline(lines, line) && line.starts_with("  ")) {
    const bool begins = line[2] == '-';
    if (begins) entries.emplace_back();
    const auto first = line.find_first_not_of(' ');
    if (entries.empty() || first == line.npos) continue;
    if (!begins) entries.back() += ' ';
    entries.back() += line.substr(first, line.find_last_not_of(' ') - first + 1);
  }
  return entries;
}

}  // namespace

std::map<std::string, OptionHelp> parse_help(const std::string& text) {
  static const std::regex form(
      "(?:-\\w \\[ )?--([a-z0-9-]+)(?: \\])?(?: (?![ (])(\\S+))?(?: \\(=([^)]*)\\))?(?: +(.*))?");
  std::map<std::string, OptionHelp> options;
  for (const std::string& entry : option_entries(text)) {
    std::smatch match;
    if (!std::regex_match(entry, match, form)) {
      ADD_FAILURE() << "cannot read the help's line: " << entry;
      continue;
    }
    options[match[1]] = {match[2], default_in(match[3], match[4])};
  }
  return options;
}

std::map<std::string, OptionHelp> options_of(const std::string& command) {
  for (const Command& c : all_commands()) {
    if (c.name != command) continue;
    testing::internal::CaptureStdout();
    const int code = c.run({"--help"});
    const auto options = parse_help(testing::internal::GetCapturedStdout());
    EXPECT_EQ(code, 0) << command;
    EXPECT_FALSE(options.empty()) << command << " --help lists no options";
    return options;
  }
  ADD_FAILURE() << command << " is not a command";
  return {};
}

}  // namespace h3::test
