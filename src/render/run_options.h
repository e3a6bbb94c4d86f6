// How a run is carried out: everything about machines, ranks and files that is not part of a scene and changes none of
// its bits, except precision and profile, which name what is computed. One table parses, documents and echoes them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_set.h"

namespace h3 {

struct RunOptions {
  std::string model;
  std::string output = ".";
  std::string device = "auto";       // auto, cpu, cuda
  std::string precision = "auto";    // auto, f32, bf16
  std::string vae_profile = "auto";  // auto, F, R
  std::string exchange = "auto";     // auto, all-gather, all-to-all
  std::string transport = "auto";    // auto, nccl, host
  std::int64_t exchange_chunks = 1;
  std::int64_t ranks_per_scene = 0;             // 0: all
  std::string shares, row_shares, head_shares;  // "" or "3,2,1"
  std::string residency = "auto";               // auto, resident, streamed
  std::string page_lock = "on";                 // on, off
  std::int64_t row_chunk = 0;                   // 0: automatic
  std::string existing = "skip";                // skip, overwrite, refuse
  std::string resume = "resume";                // resume, restart, refuse
  std::int64_t checkpoint_steps = 1;            // 0: not by steps
  std::int64_t checkpoint_seconds = 0;          // 0: not by time
  std::string checkpoint_scratch;               // "" or a folder of the node
  std::int64_t checkpoint_flush = 60;           // seconds that checkpoints may be in that folder alone
  std::int64_t preview_steps = 0;               // 0: none
  std::string cache = "on";                     // on, memory, off
  std::string cache_folder;                     // "": the user's
  std::string cache_size = "20";                // GiB
  std::string file_locking = "auto";            // auto, on, off
  std::string attention = "auto";               // auto, cudnn, own
  bool share_gpus = false;
  std::string max_time;                  // "" or a duration
  std::string halt_file;                 // "" or a file
  std::int64_t hang_timeout = 0;         // seconds; 0: automatic
  std::int64_t stop_after_failures = 0;  // 0: never
  std::string claimed = "wait";          // wait, leave
  bool keep_going = false;
  std::string dump;
  std::string scratch;                // "" or a folder for what does not fit into memory
  std::string host_reserve = "auto";  // auto, GiB
  std::string fail;                   // tests: render/asked_fault.h
  std::string write_fault;            // tests: checkpoint/write_hooks.h
};

struct RunOptionHelp {
  std::string name, value, default_value, help;
};
// All options in the order of the guide; names as on the command line without the dashes.
const std::vector<RunOptionHelp>& run_option_help();

// Sets one option by its name. Throws UserError naming the option, its value and what would be right.
void set_run_option(RunOptions& options, const std::string& name, const std::string& value);
bool is_run_option(std::string_view name);

// What the options mean for a number of ranks: one share a rank (--row-shares and --head-shares before --shares, equal
// otherwise). Throw UserError naming the option (parallel/shards.h).
std::vector<double> row_shares(const RunOptions& options, int ranks);
std::vector<double> head_shares(const RunOptions& options, int ranks);
// `auto` is f32 and F on the CPU, bf16 and R on a GPU.
Precision precision_of(const RunOptions& options, bool on_gpu);
VaeProfile vae_profile_of(const RunOptions& options, bool on_gpu);

// Every option as it stands, for the log, the agreement of ranks and the manifest.
nlohmann::ordered_json to_json(const RunOptions& options);

}  // namespace h3
