// h3render render
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "parallel/cluster.h"
#include "render/agreement.h"
#include "render/run.h"
#include "render/stop_signals.h"

namespace h3 {

namespace {

CommandHelp render_help() {
  return {
      "render",
      "renders scenes on all ranks that the launcher started",
      "SCENE... --model DIR --output DIR [options] [KEY=VALUE ...]",
      "SCENE is a JSON file (one scene, or an array), JSON lines, or a folder of them. Started by mpirun or srun, one\n"
      "rank a GPU, or alone as one rank. A scene named X leaves X.mp4, X.sheet.png and X.manifest.json in the output\n"
      "folder; latents, frames and samples are the same bits on any number of ranks. KEY=VALUE overrides a key of "
      "every\n"
      "scene, or gives an option of the run.\n\n"
      "Exit codes: 0 all scenes done, 2 bad input (nothing was started), 3 some scenes failed, 75 stopped at a\n"
      "checkpoint, 1 anything else.",
      {"mpirun -n 2 h3render render jobs/demo.json --model jobs/nano --output out",
       "mpirun -n 4 h3render render scenes/ --model /models/MiniMax-H3 --output out --shares 2,1,1,1",
       "h3render render scene.json --model synthetic:7:jobs/nano --output out seed=5 evaluations=8 output.wav=true"},
      scene_keys_text()};
}

RunRequest request_of(const CommandLine& line, int rank) {
  start_log(line.log(), rank);
  RunRequest request;
  request.scenes = line.words();
  request.options = run_options_from(line, request.overrides);
  request.quiet = line.has("quiet");
  return request;
}

}  // namespace

int run_render(const std::vector<std::string>& words) {
  boost::program_options::options_description options;
  add_run_options(options);
  const auto parse = [&] { return CommandLine(render_help(), options, words, true); };
  for (const std::string& word : words)
    if (word == "--help" || word == "-h") {
      std::cout << parse().help_text();
      return static_cast<int>(ExitCode::done);
    }

  const StopSignals signals;
  Cluster cluster(nullptr, nullptr);
  try {
    RunRequest request;
    together(cluster, [&] { request = request_of(parse(), cluster.rank()); });
    return static_cast<int>(run_scenes(cluster, request));
  } catch (const UserError& e) {
    // Every rank has the same error; one tells it.
    if (cluster.rank() == 0) std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: rank %d on %s: %s\n", cluster.rank(), cluster.host().c_str(), e.what());
    std::fflush(stderr);
    Cluster::abort(static_cast<int>(ExitCode::failure));
  }
}

}  // namespace h3
