// Names the command and calls it; nothing else.
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "commands/command_line.h"
#include "render/version.h"

using namespace h3;

namespace {

void print_usage(std::FILE* out) {
  std::fprintf(out, "h3render: renders MiniMax H3 scenes on any number of ranks\n\nUsage: h3render COMMAND ...\n\n");
  for (const Command& c : all_commands())
    std::fprintf(out, "  %-12s %s\n", std::string(c.name).c_str(), std::string(c.summary).c_str());
  std::fprintf(out, "\nh3render COMMAND --help tells more of each; h3render --version prints versions.\n");
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_usage(stderr);
    return static_cast<int>(ExitCode::bad_input);
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_usage(stdout);
    return static_cast<int>(ExitCode::done);
  }
  if (words[0] == "--version") {
    std::printf("%s\n", version_text().c_str());
    return static_cast<int>(ExitCode::done);
  }
  std::vector<std::string_view> names;
  for (const Command& c : all_commands()) {
    names.push_back(c.name);
    if (c.name == words[0]) return c.run({words.begin() + 1, words.end()});
  }
  throw UserError("h3render", "", words[0], "is not a command" + did_you_mean(words[0], names));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const UserError& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(ExitCode::failure);
  }
}
