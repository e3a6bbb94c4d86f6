#include "commands/commands.h"

#include "commands/command_line.h"

namespace h3 {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands{
      {"render", "renders scenes on all ranks that the launcher started", run_render},
      {"check", "checks scenes and a model folder's headers in seconds", run_check},
      {"plan", "rows, heads, operations, bytes and memory for any number of ranks", run_plan},
      {"status", "tells from an output folder's files how its scenes stand", run_status},
      {"inspect", "shows a safetensors file, a manifest, a checkpoint or a model folder", run_inspect},
      {"compare", "compares two renders frame by frame", run_compare},
      {"join", "puts renders one after another into one MP4", run_join},
      {"cache", "lists or clears what renders keep of encoded prompts and media", run_cache},
      {"make-model", "writes a model folder with seeded synthetic weights", run_make_model},
      {"bench", "times operators and a step on this machine", run_bench},
  };
  return commands;
}

}  // namespace h3
