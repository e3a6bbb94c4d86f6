// The parts of a Markdown document that tests read: sections, the tables in them, and lines of code with a command of
// the program.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace h3::test {

std::string read_document(const std::filesystem::path& path);

// Text under each heading of the second level ("## NAME"), by name.
std::map<std::string, std::string> sections_of(const std::string& markdown);

// The cells of all table rows of a text, headings and rulers left out; `\|` is `|`.
std::vector<std::vector<std::string>> table_rows(const std::string& text);

// What stands in backticks in a text, in order.
std::vector<std::string> quoted_in(const std::string& text);
// A cell without backticks.
std::string unquoted(std::string cell);

// "h3render COMMAND WORDS" of all code lines (of Markdown: indented by four or within fences) and script lines that call
// the program; lines that end with a backslash are joined with the next. `where` and the words after "h3render".
struct Call {
  std::string where;
  std::vector<std::string> words;
};
std::vector<Call> program_calls(const std::filesystem::path& path);

}  // namespace h3::test
