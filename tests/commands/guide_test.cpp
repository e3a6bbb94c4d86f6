// The guide says what the program does: every option of every command and every scene key stands in it with its value
// and default, it names no others, and the command lines in all documents and scripts name options that exist.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "commands/command_line.h"
#include "commands/documents.h"
#include "commands/program_help.h"
#include "render/run_options.h"
#include "scene/scene_keys.h"

namespace h3::test {

namespace fs = std::filesystem;

namespace {

const fs::path root = H3RENDER_SOURCE_DIR;

using OptionTable = std::map<std::string, OptionHelp>;

const std::map<std::string, std::string>& guide() {
  static const auto sections = sections_of(read_document(root / "docs" / "guide.md"));
  return sections;
}

std::string section(const std::string& name) {
  const auto found = guide().find(name);
  if (found == guide().end()) ADD_FAILURE() << "the guide has no section \"" << name << "\"";
  return found == guide().end() ? "" : found->second;
}

// The rows "| `--option VALUE` | default | meaning |" of a section.
OptionTable option_table(const std::string& name) {
  OptionTable table;
  for (const auto& row : table_rows(section(name))) {
    if (row.empty() || !row[0].starts_with("`--")) continue;
    EXPECT_EQ(row.size(), 3u) << row[0];
    const std::string option = unquoted(row[0]).substr(2);
    const auto space = option.find(' ');
    const std::string key = option.substr(0, space);
    EXPECT_EQ(table.count(key), 0u) << "twice in \"" << name << "\": --" << key;
    const std::string default_value = row.size() > 1 ? unquoted(row[1]) : "";
    table[key] = {space == option.npos ? "" : option.substr(space + 1),
                  default_value == "none" || default_value == "off" ? "" : default_value};
    EXPECT_FALSE(row.back().empty()) << "--" << key << " is not explained";
  }
  return table;
}

OptionTable run_option_table() {
  return option_table("Options of a run");
}

// The options of a run that a command's section says it takes: "Options of a run: all." or a list in backticks that
// ends with the paragraph.
OptionTable run_options_named_in(const std::string& command) {
  const std::string text = section(command), mark = "Options of a run: ";
  const auto begin = text.find(mark);
  if (begin == text.npos) return {};
  const std::string paragraph = text.substr(begin + mark.size(), text.find("\n\n", begin) - begin - mark.size());
  const OptionTable all = run_option_table();
  if (paragraph.starts_with("all.")) return all;
  OptionTable named;
  for (const std::string& quoted : quoted_in(paragraph)) {
    const auto found = all.find(quoted.substr(2));
    if (found == all.end())
      ADD_FAILURE() << command << " is said to take " << quoted << ", which is not in \"Options of a run\"";
    else
      named.insert(*found);
  }
  return named;
}

// All that the guide says a command takes.
OptionTable documented(const std::string& command) {
  OptionTable table = option_table(command);
  table.merge(run_options_named_in(command));
  table.merge(option_table("Options of every command"));
  return table;
}

void expect_equal(const OptionTable& guide_says, const OptionTable& program_says, const std::string& what) {
  for (const auto& [name, option] : program_says) {
    const auto found = guide_says.find(name);
    if (found == guide_says.end()) {
      ADD_FAILURE() << "the guide lacks --" << name << " of " << what;
      continue;
    }
    EXPECT_EQ(found->second.value, option.value) << "value of --" << name << " of " << what;
    EXPECT_EQ(found->second.default_value, option.default_value) << "default of --" << name << " of " << what;
  }
  for (const auto& [name, option] : guide_says)
    EXPECT_EQ(program_says.count(name), 1u) << "the guide has --" << name << " of " << what << ", the program has not";
}

// Every option of any command.
std::set<std::string> all_options() {
  std::set<std::string> names{"version"};
  for (const Command& command : all_commands())
    for (const auto& [name, option] : options_of(std::string(command.name))) names.insert(name);
  return names;
}

bool is_override(const std::string& word) {
  static const std::regex form("[A-Za-z0-9_.]+=.*");
  return std::regex_match(word, form);
}

// The key of "KEY=VALUE" is a scene's or an option's of a run.
void check_override(const std::string& word, const std::string& where) {
  std::string dashed = word.substr(0, word.find('='));
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (dashed == "KEY" || is_run_option(dashed)) return;
  EXPECT_NO_THROW(parse_override(word)) << where << ": " << word;
}

void check_call(const Call& call) {
  const std::string& command = call.words[0];
  if (command == "COMMAND" || command.starts_with("-")) return;
  const auto options = options_of(command);
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    std::string word = call.words[i];
    word.erase(0, word.find_first_not_of('['));  // usage lines put optional words into brackets
    if (is_override(word)) check_override(word, call.where);
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find_first_of("=]") - 2);
    EXPECT_EQ(options.count(name), 1u) << call.where << ": " << command << " has no --" << name;
  }
}

}  // namespace

TEST(Guide, HasASectionForEveryCommand) {
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    expect_equal(documented(name), options_of(name), name);
  }
}

TEST(Guide, ListsTheOptionsOfARun) {
  OptionTable program;
  for (const RunOptionHelp& option : run_option_help()) program[option.name] = {option.value, option.default_value};
  expect_equal(run_option_table(), program, "a run");
}

TEST(Guide, ListsTheKeysOfAScene) {
  std::map<std::string, std::vector<std::string>> rows;
  for (const auto& row : table_rows(section("Scenes"))) {
    ASSERT_EQ(row.size(), 4u);
    EXPECT_TRUE(rows.emplace(unquoted(row[0]), row).second) << "twice in the guide: " << row[0];
  }
  for (const SceneKeyHelp& key : scene_key_help()) {
    const auto found = rows.find(key.name);
    if (found == rows.end()) {
      ADD_FAILURE() << "the guide lacks the key " << key.name;
      continue;
    }
    EXPECT_EQ(unquoted(found->second[1]), key.type) << "values of " << key.name;
    EXPECT_EQ(unquoted(found->second[2]), key.default_value.empty() ? "none" : key.default_value)
        << "default of " << key.name;
    EXPECT_FALSE(found->second[3].empty()) << key.name << " is not explained";
    rows.erase(found);
  }
  for (const auto& [name, row] : rows) ADD_FAILURE() << "the guide has the key " << name << ", the program has not";
}

TEST(Guide, NamesNoOptionThatIsNotThere) {
  const std::set<std::string> known = all_options();
  static const std::regex option("(?:^|[^a-z0-9-])--([a-z][a-z0-9-]*)");
  for (const char* file : {"docs/guide.md", "jobs/README.md"}) {
    const std::string text = read_document(root / file);
    for (std::sregex_iterator it(text.begin(), text.end(), option), end; it != end; ++it) {
      const std::string name = (*it)[1];
      EXPECT_TRUE(name == "option" || known.count(name)) << file << " names --" << name;
    }
  }
}

TEST(Guide, HasARowForEveryExitCode) {
  std::set<std::string> codes;
  for (const auto& row : table_rows(section("Exit codes"))) codes.insert(row[0]);
  EXPECT_EQ(codes, (std::set<std::string>{"0", "1", "2", "3", "75"}));
}

TEST(Documents, CallTheProgramWithOptionsThatExist) {
  std::vector<fs::path> files{root / "README.md"};
  for (const char* folder : {"docs", "jobs", "tools", "slurm", ".ci"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".md" || kind == ".sh" || kind == ".sbatch") files.push_back(entry.path());
    }
  }
  std::size_t calls = 0;
  for (const fs::path& file : files) {
    const Lines lines = file.extension() == ".md" ? Lines::code_of_markdown : Lines::all;
    for (const Call& call : calls_in(read_document(file), file.filename().string(), lines)) {
      check_call(call);
      ++calls;
    }
  }
  EXPECT_GE(calls, 20u);
}

TEST(Help, HasExamplesWithOptionsThatExist) {
  for (const Command& command : all_commands()) {
    testing::internal::CaptureStdout();
    command.run({"--help"});
    const std::string text = testing::internal::GetCapturedStdout();
    const auto begin = text.find("\nExamples:\n");
    ASSERT_NE(begin, text.npos) << command.name;
    const auto examples = calls_in(text.substr(begin), std::string(command.name) + " --help", Lines::all);
    EXPECT_FALSE(examples.empty()) << command.name;
    for (const Call& call : examples) {
      EXPECT_EQ(call.words[0], command.name);
      check_call(call);
    }
  }
}

// The reader of help texts itself: wrapped lines, the three ways to state a default, values with bars and brackets.
TEST(Help, IsReadBack) {
  const auto options = parse_help(
      "h3render x: y\n\nOptions:\n"
      "  --mode a|b|c                          which of them to take; a word such as --this\n"
      "                                        is not an option (default\n"
      "                                        b)\n"
      "  --ranks N[,N...] (=1)                 numbers\n"
      "  --flag                                a flag (with a remark)\n"
      "  -h [ --help ]                         help\n"
      "  --log-level LEVEL                     trace, info (default), off\n"
      "\nMore:\n  --none here\n");
  ASSERT_EQ(options.size(), 5u);
  EXPECT_EQ(options.at("mode").value, "a|b|c");
  EXPECT_EQ(options.at("mode").default_value, "b");
  EXPECT_EQ(options.at("ranks").value, "N[,N...]");
  EXPECT_EQ(options.at("ranks").default_value, "1");
  EXPECT_EQ(options.at("flag").value, "");
  EXPECT_EQ(options.at("flag").default_value, "");
  EXPECT_EQ(options.at("help").value, "");
  EXPECT_EQ(options.at("log-level").value, "LEVEL");
  EXPECT_EQ(options.at("log-level").default_value, "info");
}

}  // namespace h3::test
