// h3render plan
#include <iostream>
#include <optional>

#include "base/error.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "render/partition_use.h"
#include "render/run_plan.h"
#include "render/scene_jobs.h"
#include "weights/model_folder.h"

namespace h3 {

namespace po = boost::program_options;

namespace {

CommandHelp plan_help() {
  return {
      "plan",
      "rows, heads, operations, bytes and memory for any number of ranks",
      "SCENE... --model DIR --ranks N[,N...] [--json] [KEY=VALUE ...]",
      "Works out what a render would take, without running it and without a GPU: rows and heads of each rank, "
      "operations\n"
      "and bytes received a step, activations, weights and decoding buffers a rank, weights and decoded frames a node.",
      {"h3render plan jobs/demo.json --model jobs/nano --ranks 1,2,4",
       "h3render plan scene.json --model synthetic:1 --text-rows 1024 --ranks 8 --precision bf16 --json"},
      ""};
}

}  // namespace

int run_plan(const std::vector<std::string>& words) {
  po::options_description description;
  description.add_options()("ranks", po::value<std::string>()->value_name("N[,N...]")->default_value("1"),
                            "numbers of ranks to plan for")(
      "text-rows", po::value<std::int64_t>()->value_name("N"),
      "rows that the prompt takes, instead of counting its tokens; then the model needs no tokenizer")("json",
                                                                                                       "print JSON");
  add_run_options(description, {"model", "precision", "vae-profile", "exchange", "shares", "row-shares", "head-shares",
                                "row-chunk", "device"});
  const CommandLine line(plan_help(), description, words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  std::vector<std::string> overrides;
  const RunOptions options = run_options_from(line, overrides);
  const ModelFolder model = open_for_rendering(line.required("model"), false);
  std::optional<Tokenizer> tokenizer;
  if (!line.has("text-rows")) tokenizer = load_tokenizer(model);
  if (line.words().empty()) throw UserError("h3render plan", "", "", "no scene was given");
  const SceneJobs jobs = prepare_scenes(line.words(), overrides, model, tokenizer ? &*tokenizer : nullptr);
  jobs.require_all_good();

  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SceneJob& job : jobs.good) {
    for (const std::int64_t count : counts_of(line.get<std::string>("ranks"), "--ranks", 1)) {
      const auto ranks = static_cast<int>(count);
      PlanRequest request;
      request.model = model.config();
      request.geometry = job.geometry;
      request.text_rows =
          tokenizer ? present_scene(job, model.config(), *tokenizer).rows() : line.get<std::int64_t>("text-rows");
      add_conditions(request, job.media);
      request.evaluations =
          job.scene.sigmas.empty() ? job.scene.evaluations : static_cast<std::int64_t>(job.scene.sigmas.size()) - 1;
      request.ranks = ranks;
      request.row_shares = row_shares(options, ranks);
      request.head_shares = head_shares(options, ranks);
      request.exchange = options.exchange;
      const bool on_gpu = options.device == "cuda";
      request.precision = precision_of(options, on_gpu);
      request.profile = vae_profile_of(options, on_gpu);
      request.row_chunk = options.row_chunk;
      const RunPlan plan = make_run_plan(request);
      if (line.has("json")) {
        nlohmann::ordered_json j{{"scene", job.scene.name}, {"ranks_planned", ranks}};
        j.update(to_json(plan));
        all.push_back(j);
      } else {
        std::cout << "scene " << job.scene.name << " on " << ranks << (ranks == 1 ? " rank\n" : " ranks\n")
                  << text_of(plan) << "\n";
      }
    }
  }
  if (line.has("json")) std::cout << all.dump(2) << "\n";
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
