// h3render plan
#include <iostream>
#include <optional>

#include "base/error.h"
#include "bench/scaling_record.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "render/partition_use.h"
#include "render/run_prediction.h"
#include "render/scene_jobs.h"
#include "render/stop_notice.h"
#include "weights/model_folder.h"

namespace h3 {

namespace po = boost::program_options;

namespace {

CommandHelp plan_help() {
  return {"plan",
          "rows, heads, operations, bytes and memory for any number of ranks",
          "SCENE... --model DIR --ranks N[,N...] [--json] [KEY=VALUE ...]",
          "Works out what a render would take, without running it and without a GPU: rows and heads of each rank, "
          "operations\n"
          "and bytes received a step, activations, weights and decoding buffers a rank, weights and decoded frames a "
          "node.\n"
          "With --predict also how long a step and the render would take, by rates that were measured or assumed: the "
          "output\n"
          "says which.",
          {"h3render plan jobs/demo.json --model jobs/nano --ranks 1,2,4",
           "h3render plan scene.json --model synthetic:1 --text-rows 1024 --ranks 8 --precision bf16 --json",
           "h3render plan scene.json --model synthetic:1 --text-rows 1024 --device cuda --ranks 8,16 --predict H200 "
           "--ranks-per-node 8",
           "h3render plan jobs/demo.json --model jobs/nano --ranks 4 --step-seconds 95"},
          ""};
}

double gigabytes(const CommandLine& line, const std::string& option, double otherwise) {
  if (!line.has(option)) return otherwise;
  const double value = line.get<double>(option);
  if (!(value > 0)) throw UserError("--" + option, "", fmt::format("{}", value), "more than 0");
  return value * 1e9;
}

// The rates that --predict names: of a card, or fitted to the points of a file that `bench scaling` wrote.
StepRates named_rates(const std::string& name, const TransformerConfig& config) {
  if (name.ends_with(".json")) return fitted_rates(read_scaling(name), config);
  const auto rates = step_rates_of(name);
  if (!rates)
    throw UserError("--predict", "", name,
                    "a card of the data-sheet table by its name (H200, H100, A100, RTX 4090, ...), or a JSON file that "
                    "bench scaling wrote");
  return *rates;
}

std::optional<PredictionRequest> prediction_from(const CommandLine& line, const TransformerConfig& config) {
  for (const char* option : {"ranks-per-node", "link", "node-link", "host-link"})
    if (line.has(option) && !line.has("predict"))
      throw UserError(fmt::format("--{}", option), "", "", "--predict beside it, which it is for");
  if (!line.has("predict")) return std::nullopt;
  PredictionRequest request;
  request.rates = named_rates(line.get<std::string>("predict"), config);
  request.rates.link = gigabytes(line, "link", request.rates.link);
  request.rates.node_link = gigabytes(line, "node-link", request.rates.node_link);
  request.rates.host_link = gigabytes(line, "host-link", request.rates.host_link);
  request.ranks_per_node = line.get_or<int>("ranks-per-node", 0);
  if (request.ranks_per_node < 0)
    throw UserError("--ranks-per-node", "", std::to_string(request.ranks_per_node), "at least 1");
  return request;
}

// Nothing where the time of a step is not known. A measured one comes before a predicted one.
std::optional<StopNotice> stop_notice(const CommandLine& line, const PlanRequest& request, SamplerKind sampler,
                                      const std::optional<RunPrediction>& predicted) {
  if (!line.has("step-seconds") && !predicted) return std::nullopt;
  const double seconds = line.has("step-seconds") ? line.get<double>("step-seconds") : predicted->step.seconds();
  if (!(seconds > 0)) throw UserError("--step-seconds", "", fmt::format("{}", seconds), "more than 0");
  return advise_stop(seconds, checkpoint_bytes(request, sampler));
}

}  // namespace

int run_plan(const std::vector<std::string>& words) {
  po::options_description description;
  description.add_options()("ranks", po::value<std::string>()->value_name("N[,N...]")->default_value("1"),
                            "numbers of ranks to plan for")(
      "text-rows", po::value<std::int64_t>()->value_name("N"),
      "rows that the prompt takes, instead of counting its tokens; then the model needs no tokenizer")("json",
                                                                                                       "print JSON")(
      "predict", po::value<std::string>()->value_name("CARD|FILE"),
      "also predict times: for a card by its name, or by the steps that bench scaling measured into a JSON file")(
      "ranks-per-node", po::value<int>()->value_name("N"), "predict: ranks on each node (default: all on one)")(
      "link", po::value<double>()->value_name("GB/S"),
      "predict: what a rank receives a second from its node's others (default: the card's)")(
      "node-link", po::value<double>()->value_name("GB/S"), "predict: the same from other nodes (default 50)")(
      "host-link", po::value<double>()->value_name("GB/S"),
      "predict: streamed weights from host memory (default: the card's)")(
      "step-seconds", po::value<double>()->value_name("S"),
      "what a step takes, from a log or a manifest, where it is not predicted: tells how long before its end a Slurm "
      "job has to be told to stop");
  add_run_options(description, {"model", "residency", "precision", "vae-profile", "exchange", "shares", "row-shares",
                                "head-shares", "row-chunk", "device"});
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

  std::optional<PredictionRequest> prediction = prediction_from(line, model.config().transformer);
  if (prediction) prediction->streamed = options.residency == "streamed";

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
      std::optional<RunPrediction> predicted;
      if (prediction) predicted = predict_run(request, plan, *prediction);
      const std::optional<StopNotice> notice = stop_notice(line, request, job.scene.sampler, predicted);
      if (line.has("json")) {
        nlohmann::ordered_json j{{"scene", job.scene.name}, {"ranks_planned", ranks}};
        j.update(to_json(plan));
        if (predicted) j["predicted"] = to_json(*predicted);
        if (notice) j["stop"] = to_json(*notice);
        all.push_back(j);
      } else {
        std::cout << "scene " << job.scene.name << " on " << ranks << (ranks == 1 ? " rank\n" : " ranks\n")
                  << text_of(plan) << (predicted ? text_of(*predicted) : "") << (notice ? text_of(*notice) : "")
                  << "\n";
      }
    }
  }
  if (line.has("json")) std::cout << all.dump(2) << "\n";
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
