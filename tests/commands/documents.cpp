#include "commands/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

namespace h3::test {

std::string read_document(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> sections_of(const std::string& markdown) {
  std::map<std::string, std::string> sections;
  std::istringstream lines(markdown);
  std::string line, name;
  while (std::getline(lines, line)) {
    if (line.starts_with("## "))
      name = line.substr(3);
    else
      sections[name] += line + "\n";
  }
  return sections;
}

static std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The cells of "| a | b |".
static std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      cells.push_back(trimmed(cell));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

std::vector<std::vector<std::string>> table_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  std::string line;
  bool in_body = false;
  while (std::getline(lines, line)) {
    if (!line.starts_with("|"))
      in_body = false;
    else if (line.starts_with("|---"))
      in_body = true;
    else if (in_body)
      rows.push_back(cells_of(line));
  }
  return rows;
}

std::vector<std::string> quoted_in(const std::string& text) {
  static const std::regex quoted("`([^`]+)`");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

std::string unquoted(std::string cell) {
  std::erase(cell, '`');
  return cell;
}

// Words of a shell line; quotes group and vanish.
static std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ' ') {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

static bool ends_call(const std::string& word) {
  return word == "|" || word == "&&" || word == ";" || word == ":" || word == "#" || word.starts_with(">");
}

// Adds the call in a line, if there is one.
static void add_call(const std::string& line, const std::string& where, std::vector<Call>& calls) {
  const std::vector<std::string> words = shell_words(line);
  const auto program = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "h3render" || word.ends_with("/h3render");
  });
  if (program == words.end() || program + 1 == words.end()) return;
  calls.push_back({where, {program + 1, std::find_if(program, words.end(), ends_call)}});
}

std::vector<Call> calls_in(const std::string& text, const std::string& where, Lines kind) {
  std::vector<Call> calls;
  std::istringstream lines(text);
  std::string line, begun;
  bool fenced = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("```")) fenced = !fenced;
    const bool code = kind == Lines::all || fenced || line.starts_with("    ") || !begun.empty();
    if (!code || line.starts_with("#")) continue;
    if (line.ends_with("\\")) {
      begun += line.substr(0, line.size() - 1);
      continue;
    }
    add_call(begun + line, where + ", line " + std::to_string(number), calls);
    begun.clear();
  }
  return calls;
}

}  // namespace h3::test
