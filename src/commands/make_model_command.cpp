// h3render make-model
#include <iostream>

#include "base/error.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "weights/model_writer.h"

namespace h3 {

namespace po = boost::program_options;

static CommandHelp make_model_help() {
  return {
      "make-model",
      "writes a model folder with seeded synthetic weights",
      "FOLDER --model synthetic:SEED[:CONFIG_DIR]|DIR [--tokenizer DIR] [--shard-bytes N]",
      "Writes a complete folder of the diffusers layout: configuration files, weights and tokenizer. The weights come "
      "from\n"
      "a seed, for any configuration (of the released model where no folder is named), or from another model folder,\n"
      "which converts its layout. Synthetic weights have realistic ranges and mean nothing.",
      {"h3render make-model /tmp/model --model synthetic:7:jobs/nano",
       "h3render make-model /tmp/diffusers --model /models/MiniMax-H3-original"},
      ""};
}

int run_make_model(const std::vector<std::string>& words) {
  po::options_description options;
  options.add_options()("model", po::value<std::string>()->value_name("MODEL"), "what to write")(
      "tokenizer", po::value<std::string>()->value_name("DIR"),
      "model folder whose tokenizer is copied (default: the model's own)")(
      "shard-bytes", po::value<std::uint64_t>()->value_name("N")->default_value(WriteModelOptions().shard_bytes),
      "cut components larger than this into shards");
  const CommandLine line(make_model_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.words().size() != 1) throw UserError("h3render make-model", "", "", "takes one folder to write");
  WriteModelOptions write;
  write.shard_bytes = line.get<std::uint64_t>("shard-bytes");
  if (write.shard_bytes == 0) throw UserError("--shard-bytes", "", "0", "at least 1");
  write.tokenizer_from = line.get_or<std::string>("tokenizer", "");
  write_model_folder(line.words()[0], open_model(line.required("model")), write);
  spdlog::info("wrote {}", line.words()[0]);
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
