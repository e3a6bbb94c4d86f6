#include "render/run_options.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/error.h"
#include "base/names.h"
#include "checkpoint/write_hooks.h"
#include "parallel/shards.h"
#include "render/asked_fault.h"
#include "render/cache_options.h"
#include "render/host_reserve.h"

namespace h3 {

namespace {

struct Option {
  RunOptionHelp help;
  std::function<void(RunOptions&, const std::string&)> set;
  std::function<nlohmann::ordered_json(const RunOptions&)> get;
};

Option text(std::string name, std::string value, std::string RunOptions::*field, std::string help) {
  return {{name, std::move(value), RunOptions().*field, std::move(help)},
          [field](RunOptions& o, const std::string& v) { o.*field = v; },
          [field](const RunOptions& o) { return o.*field; }};
}

Option choice(std::string name, std::vector<std::string_view> values, std::string RunOptions::*field,
              std::string help) {
  std::string listed;
  for (std::string_view v : values) {
    if (!listed.empty()) listed += '|';
    listed += v;
  }
  Option option = text(name, listed, field, std::move(help));
  option.set = [name, values, field, listed](RunOptions& o, const std::string& v) {
    if (std::find(values.begin(), values.end(), v) == values.end())
      throw UserError("--" + name, "", v, "one of " + listed + did_you_mean(v, values));
    o.*field = v;
  };
  return option;
}

Option count(std::string name, std::int64_t least, std::int64_t RunOptions::*field, std::string help) {
  return {{name, "N", std::to_string(RunOptions().*field), std::move(help)},
          [name, least, field](RunOptions& o, const std::string& v) {
            std::int64_t n = 0;
            const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), n);
            if (error != std::errc() || end != v.data() + v.size() || n < least)
              throw UserError("--" + name, "", v, fmt::format("a whole number from {} up", least));
            o.*field = n;
          },
          [field](const RunOptions& o) { return o.*field; }};
}

// A text that `parse` understands, or throws UserError about.
template <typename Parse>
Option parsed(std::string name, std::string value, std::string RunOptions::*field, Parse parse, std::string help) {
  Option option = text(name, std::move(value), field, std::move(help));
  option.set = [name, field, parse](RunOptions& o, const std::string& v) {
    parse(v, "--" + name);
    o.*field = v;
  };
  return option;
}

Option flag(std::string name, bool RunOptions::*field, std::string help) {
  return {{name, "", "", std::move(help)},
          [name, field](RunOptions& o, const std::string& v) {
            if (v != "" && v != "true" && v != "false") throw UserError("--" + name, "", v, "true or false");
            o.*field = v != "false";
          },
          [field](const RunOptions& o) { return o.*field; }};
}

const std::vector<Option>& options() {
  static const std::vector<Option> all{
      text("model", "DIR", &RunOptions::model,
           "model folder (diffusers or original layout), or synthetic:SEED[:CONFIG_DIR] for seeded weights"),
      text("output", "DIR", &RunOptions::output, "folder for what is rendered; made where it is missing"),
      choice("device", {"auto", "cpu", "cuda"}, &RunOptions::device,
             "what to compute on; auto: a GPU where there is one"),
      choice("precision", {"auto", "f32", "bf16"}, &RunOptions::precision,
             "of transformer and text encoder; auto: f32 on CPUs, bf16 on GPUs"),
      choice("vae-profile", {"auto", "F", "R"}, &RunOptions::vae_profile,
             "of the video decoder: F float32, R as released (float16 operands); auto: F on CPUs, R on GPUs"),
      choice("exchange", {"auto", "all-gather", "all-to-all"}, &RunOptions::exchange,
             "what ranks exchange in a block: hidden states, or q, k and v by head; auto: the one with fewer bytes"),
      choice("transport", {"auto", "peer", "nccl", "host"}, &RunOptions::transport,
             "what carries it: copies between the GPUs of one node, NCCL, or MPI through host memory; auto: nccl where "
             "every "
             "rank has a GPU of its own"),
      choice("attention", {"auto", "cudnn", "own"}, &RunOptions::attention,
             "attention kernels on GPUs: cuDNN's, this program's, or by the table of cards; part of the numerics id"),
      flag("share-gpus", &RunOptions::share_gpus, "let several ranks compute on one GPU (transport host or peer)"),
      count("exchange-chunks", 1, &RunOptions::exchange_chunks, "pieces an exchange is cut into"),
      text("shares", "A,B,...", &RunOptions::shares,
           "rows and heads of each rank in proportion, 0: idle; default equal"),
      text("row-shares", "A,B,...", &RunOptions::row_shares, "rows alone; overrides --shares"),
      text("head-shares", "A,B,...", &RunOptions::head_shares, "heads alone; overrides --shares"),
      count("ranks-per-scene", 0, &RunOptions::ranks_per_scene,
            "cut the ranks into groups of so many, each with a scene of its own; 0: all ranks render one scene"),
      choice("residency", {"auto", "resident", "streamed"}, &RunOptions::residency,
             "whether the transformer's blocks stay on the GPU or pass through it; auto: by free memory"),
      choice("page-lock", {"on", "off"}, &RunOptions::page_lock,
             "whether weights in host memory are page-locked for the GPU's copies, where the system allows it"),
      count("row-chunk", 0, &RunOptions::row_chunk, "rows a linear layer takes at once; 0: automatic"),
      choice("existing", {"skip", "overwrite", "refuse"}, &RunOptions::existing,
             "what to do with a scene that is rendered already: skip it where it is the same (and refuse where it is "
             "another), render it again, or refuse"),
      choice("resume", {"resume", "restart", "refuse"}, &RunOptions::resume,
             "what to do with a scene that was stopped: go on from its checkpoint, start it again, or refuse"),
      count("checkpoint-steps", 0, &RunOptions::checkpoint_steps,
            "steps between checkpoints; 0: by time alone, and none where --checkpoint-seconds is 0 too"),
      count("checkpoint-seconds", 0, &RunOptions::checkpoint_seconds,
            "also write one when this many seconds have passed since the last; 0: by steps alone"),
      text("checkpoint-scratch", "DIR", &RunOptions::checkpoint_scratch,
           "a fast folder of the node that checkpoints go to first"),
      count("checkpoint-flush", 0, &RunOptions::checkpoint_flush,
            "seconds after which a checkpoint in --checkpoint-scratch is also written to the output folder"),
      count("preview-steps", 0, &RunOptions::preview_steps,
            "steps between previews, NAME.preview.png: a strip of frames, roughly, from the latents; 0: none"),
      choice("cache", {"on", "memory", "off"}, &RunOptions::cache,
             "keep what the encoders make of prompts and media for later runs: on; for this run alone: memory; or not"),
      text("cache-folder", "DIR", &RunOptions::cache_folder,
           "where it is kept; default h3render/encodings in the user's cache folder"),
      parsed("cache-size", "GIB", &RunOptions::cache_size, parse_cache_size,
             "how much of it: what was not used for the longest time goes"),
      choice("file-locking", {"auto", "on", "off"}, &RunOptions::file_locking,
             "whether HDF5 locks checkpoints while it reads them; auto: where the file system can"),
      text("max-time", "TIME", &RunOptions::max_time,
           "stop at a checkpoint (exit 75) after so long: seconds, MM:SS, HH:MM:SS or D-HH:MM:SS; Slurm's limit counts "
           "by "
           "itself"),
      text("halt-file", "FILE", &RunOptions::halt_file, "stop at a checkpoint (exit 75) when this file exists"),
      count("hang-timeout", 0, &RunOptions::hang_timeout,
            "seconds without progress after which a rank ends the run; 0: ten steps, at least 120"),
      count("stop-after-failures", 0, &RunOptions::stop_after_failures,
            "end the run after so many failed scenes; 0: never"),
      choice(
          "claimed", {"wait", "leave"}, &RunOptions::claimed,
          "scenes that another run is rendering: wait for them at the end and take over what it leaves, or leave them"),
      flag("keep-going", &RunOptions::keep_going, "render the good scenes of a run that also has bad ones (exit 3)"),
      text("dump", "FILE", &RunOptions::dump,
           "one scene: text states, rows of every step, frames and samples as "
           "safetensors, for parity checks"),
      text("scratch", "DIR", &RunOptions::scratch, "folder for weights that do not fit into host memory or /dev/shm"),
      parsed("host-reserve", "GIB", &RunOptions::host_reserve, parse_host_reserve,
             "host memory that weights leave free: without room for more they pass through it one component after "
             "another, or lie below --scratch; auto (also a value): a thirty-second, at most 8"),
      parsed(
          "fail", "RANK:STAGE[:HOW]", &RunOptions::fail, parse_asked_fault,
          "tests: make one rank fail in a stage (validate, load, media, text, encode, step, decode), or HOW: hang, or "
          "a number of seconds that it loses there"),
      parsed("write-fault", "POINT:WHAT", &RunOptions::write_fault, parse_write_hooks,
             "tests: what happens where a checkpoint is written: POINT:hold=FILE waits while FILE exists, "
             "POINT:exit=CODE[@COUNT] ends rank 0; points opened, half, written, synced, kept, renamed, done"),
  };
  return all;
}

}  // namespace

const std::vector<RunOptionHelp>& run_option_help() {
  static const std::vector<RunOptionHelp> all = [] {
    std::vector<RunOptionHelp> h;
    for (const Option& o : options()) h.push_back(o.help);
    return h;
  }();
  return all;
}

bool is_run_option(std::string_view name) {
  return std::any_of(options().begin(), options().end(), [&](const Option& o) { return o.help.name == name; });
}

void set_run_option(RunOptions& run, const std::string& name, const std::string& value) {
  for (const Option& o : options())
    if (o.help.name == name) return o.set(run, value);
  throw UserError("--" + name, "", value, "is not an option of a run");
}

static std::vector<double> shares(const std::string& own, const std::string& name, const RunOptions& run, int ranks) {
  if (!own.empty()) return parse_shares(own, ranks, name);
  if (!run.shares.empty()) return parse_shares(run.shares, ranks, "--shares");
  return std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
}

std::vector<double> row_shares(const RunOptions& run, int ranks) {
  return shares(run.row_shares, "--row-shares", run, ranks);
}

std::vector<double> head_shares(const RunOptions& run, int ranks) {
  return shares(run.head_shares, "--head-shares", run, ranks);
}

Precision precision_of(const RunOptions& run, bool on_gpu) {
  return run.precision == "bf16" || (run.precision == "auto" && on_gpu) ? Precision::bf16 : Precision::f32;
}

VaeProfile vae_profile_of(const RunOptions& run, bool on_gpu) {
  return run.vae_profile == "R" || (run.vae_profile == "auto" && on_gpu) ? VaeProfile::R : VaeProfile::F;
}

nlohmann::ordered_json to_json(const RunOptions& run) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  for (const Option& o : options()) j[o.help.name] = o.get(run);
  return j;
}

}  // namespace h3
