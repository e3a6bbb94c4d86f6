// h3render compare
#include <iostream>

#include "base/error.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "media/compare.h"

namespace h3 {

static CommandHelp compare_help() {
  return {"compare",
          "compares two renders frame by frame",
          "A B [--json]",
          "A and B are videos, or folders of PNG frames. Tells which frames are equal, the largest difference, PSNR "
          "and SSIM\n"
          "of each frame and of all, and the sound's SNR. Exit code 0 also where they differ.",
          {"h3render compare out/a.mp4 out/b.mp4", "h3render compare out/a.frames out/b.frames --json"},
          ""};
}

int run_compare(const std::vector<std::string>& words) {
  boost::program_options::options_description options;
  options.add_options()("json", "print JSON");
  const CommandLine line(compare_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.words().size() != 2)
    throw UserError("h3render compare", "", "", fmt::format("takes two renders, {} given", line.words().size()));
  const Comparison comparison = compare_renders(line.words()[0], line.words()[1]);
  std::cout << (line.has("json") ? to_json(comparison).dump(2) + "\n" : table_of(comparison));
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
