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

// A call of the program in a text: where it stands, and the words after "h3render", the first of them the command.
struct Call {
  std::string where;
  std::vector<std::string> words;
};
// Which lines of a text can hold calls: all, or those of a Markdown document that are code (indented or fenced).
enum class Lines { all, code_of_markdown };
// Lines that end with a backslash are joined with the next; quotes group; a pipe, `&&` and the like end a call.
std::vector<Call> calls_in(const std::string& text, const std::string& where, Lines lines);

}  // namespace h3::test
