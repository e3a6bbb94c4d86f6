// h3render bench: the benches of src/bench by name. Performance lives here, never in tests.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "bench/render_bench.h"
#include "bench/scaling_bench.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "render/agreement.h"
#include "scene/geometry.h"

namespace h3 {

namespace po = boost::program_options;

namespace {

CommandHelp bench_help() {
  return {
      "bench",
      "times the machine and the parts of a render on it",
      "ceiling|attention|step|text|video|weights|render|scaling --model DIR [options]",
      "ceiling: what bounds a render here: matrix products and attention at the model's shapes, the exchange's\n"
      "collectives over the ranks, copies between host and device. attention: the attention kernels of this card in\n"
      "turns, with clock, power and their error against float32. step: one evaluation of the transformer on all "
      "ranks,\n"
      "beside its ceiling. text: encoding a prompt of random tokens. video (or vae): decoding a clip's frames on all\n"
      "ranks, from random latents. weights: a component's way from files or a seed into host memory and on to the "
      "GPU.\n"
      "render: a whole scene into files, after one that warms up, against the sum of its\n"
      "stages' ceilings. scaling: one clip on all ranks, equal work a rank, a clip a rank; runs with other\n"
      "rank counts add their points to one --json file, and the table is of all points, beside a model's predictions.\n"
      "Each row gives\n"
      "the median and the spread of the repeats after one warm-up, on random data; rates count the operations of the\n"
      "specification's formulas; MFU is the share of the card's dense bf16 peak, where it is known.",
      {"h3render bench ceiling --model jobs/nano", "h3render bench weights --model jobs/nano --components video",
       "mpirun -n 2 h3render bench step --model jobs/nano --rows 425",
       "h3render bench step --model synthetic:1:jobs/nano --json step.json",
       "mpirun -n 2 h3render bench scaling --model jobs/nano --json scaling.json",
       "h3render bench attention --model synthetic:1 --rows 38734,74410 --heads 56,28"},
      ""};
}

struct BenchRequest {
  std::vector<std::int64_t> rows, heads;
  ClipSize clip;
  std::int64_t text_rows = 0;
  std::vector<std::string> stages;
  std::vector<Component> components;
  int rounds = 3;
  std::string json;
};

using RunBench = std::function<void(Bench&, const BenchRequest&, BenchTable&)>;

void run_ceiling(Bench& bench, const BenchRequest& request, BenchTable& table) {
  for (const std::int64_t rows : request.rows) {
    bench_operators(bench, rows, table);
    bench_collectives(bench, rows, table);
  }
  bench_copies(bench, table);
}

void run_attention(Bench& bench, const BenchRequest& request, BenchTable& table) {
  const TransformerConfig& t = bench.session().config().transformer;
  AttentionRequest attention{request.rows, request.heads, t.head_dim, request.rounds};
  if (attention.heads.empty()) attention.heads = {t.heads, std::max<std::int64_t>(t.heads / 2, 1)};
  bench_attention(bench, attention, table);
}

const std::vector<std::pair<std::string, RunBench>>& all_benches() {
  static const std::vector<std::pair<std::string, RunBench>> benches{
      {"ceiling", run_ceiling},
      {"attention", run_attention},
      {"step",
       [](Bench& bench, const BenchRequest& request, BenchTable& table) {
         for (const std::int64_t rows : request.rows) bench_step(bench, rows, table);
       }},
      {"text", [](Bench& bench, const BenchRequest& request,
                  BenchTable& table) { bench_text(bench, request.text_rows, table); }},
      {"video",
       [](Bench& bench, const BenchRequest& request, BenchTable& table) { bench_video(bench, request.clip, table); }},
      {"weights", [](Bench& bench, const BenchRequest& request, BenchTable& table) {
         bench_weights(bench, request.components, table);
       }}};
  return benches;
}

// Whether the record in a file is of this session's machine, model and precision, so that points can join it.
void require_same(const ScalingRecord& here, const ScalingRecord& there, const std::string& file) {
  const auto compare = [&](const char* field, const std::string& a, const std::string& b) {
    if (a != b) throw UserError(file, field, b, fmt::format("{}, as of this run; write into another file", a));
  };
  compare("machine", here.machine, there.machine);
  compare("precision", here.precision, there.precision);
  compare("model", here.model, there.model);
}

void run_scaling(Bench& bench, const BenchRequest& request) {
  Session& s = bench.session();
  ScalingRecord record = new_record(s);
  const bool to_file = !request.json.empty() && request.json != "-";
  together(s.cluster(), [&] {
    if (!to_file || !std::filesystem::exists(request.json)) return;
    const ScalingRecord there = read_scaling(request.json);
    require_same(record, there, request.json);
    record.points = there.points;
  });
  bench_scaling(bench, {request.rows, request.text_rows, request.clip, request.stages}, record);
  if (!s.first()) return;
  if (request.json != "-") std::cout << scaling_text(record, s.config().transformer) << std::flush;
  const std::string text = to_json(record).dump(2) + "\n";
  if (request.json == "-") std::cout << text << std::flush;
  if (to_file) write_file_atomically(request.json, text);
}

std::string bench_named(const CommandLine& line) {
  std::string name = line.words().size() == 1 ? line.words()[0] : "";
  if (name == "vae") name = "video";
  if (name == "scaling" || name == "render") return name;
  std::string known = "render, scaling";
  for (const auto& bench : all_benches()) {
    if (bench.first == name) return name;
    known += ", " + bench.first;
  }
  throw UserError("h3render bench", "", name, "one of " + known);
}

int positive(const CommandLine& line, const std::string& option) {
  const int value = line.get<int>(option);
  if (value < 1) throw UserError("--" + option, "", std::to_string(value), "at least 1");
  return value;
}

std::vector<std::string> stages_from(const std::string& text) {
  std::vector<std::string> stages;
  std::istringstream words(text);
  for (std::string stage; std::getline(words, stage, ',');) {
    if (stage != "step" && stage != "text" && stage != "decode")
      throw UserError("--stages", "", stage, "step, text, decode, or several of them with commas");
    stages.push_back(stage);
  }
  if (stages.empty()) throw UserError("--stages", "", text, "step, text, decode, or several of them with commas");
  return stages;
}

std::vector<Component> components_from(const std::string& text) {
  static const std::map<std::string, Component> known{{"transformer", Component::transformer},
                                                      {"text", Component::text_encoder},
                                                      {"video", Component::video_vae},
                                                      {"audio", Component::audio_vae}};
  std::vector<Component> components;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = known.find(word);
    if (found == known.end())
      throw UserError("--components", "", word, "transformer, text, video, audio, or several of them with commas");
    components.push_back(found->second);
  }
  return components;
}

BenchRequest request_from(const CommandLine& line) {
  BenchRequest request;
  request.rows = counts_of(line.get<std::string>("rows"), "--rows", 2);
  if (line.has("heads")) request.heads = counts_of(line.get<std::string>("heads"), "--heads", 1);
  request.clip = {line.get<std::int64_t>("width"), line.get<std::int64_t>("height"), line.get<std::int64_t>("frames")};
  if (!is_legal_frame_count(request.clip.frames))
    throw UserError("--frames", "", std::to_string(request.clip.frames), "17n + 5");
  if (const auto complaint = size_complaint(request.clip.width, request.clip.height))
    throw UserError("--width, --height", "", "", *complaint);
  request.rounds = positive(line, "rounds");
  request.text_rows = positive(line, "text-rows");
  request.stages = stages_from(line.get<std::string>("stages"));
  request.components = components_from(line.get<std::string>("components"));
  request.json = line.get_or<std::string>("json", "");
  return request;
}

po::options_description bench_options() {
  po::options_description description;
  description.add_options()("rows", po::value<std::string>()->value_name("N[,N...]")->default_value("425"),
                            "rows of the packed sequence")(
      "heads", po::value<std::string>()->value_name("N[,N...]"),
      "attention: numbers of heads (default: the model's and half of it)")(
      "rounds", po::value<int>()->value_name("N")->default_value(3),
      "attention: rounds in which the kernels take turns")(
      "repeats", po::value<int>()->value_name("N")->default_value(5), "timed repeats, of attention in each round")(
      "frames", po::value<std::int64_t>()->value_name("N")->default_value(22),
      "video, render, scaling: frames of the clip (17n + 5)")(
      "width", po::value<std::int64_t>()->value_name("N")->default_value(256), "video, render, scaling: pixels")(
      "height", po::value<std::int64_t>()->value_name("N")->default_value(192), "video, render, scaling: pixels")(
      "text-rows", po::value<int>()->value_name("N")->default_value(64), "text, render, scaling: rows of the prompt")(
      "evaluations", po::value<int>()->value_name("N")->default_value(2), "render: steps of the scene")(
      "tokenizer", po::value<std::string>()->value_name("DIR"),
      "render: model folder whose tokenizer serves synthetic:SEED, which has none")(
      "stages", po::value<std::string>()->value_name("STAGE[,STAGE...]")->default_value("step,text,decode"),
      "scaling: what to measure")("components",
                                  po::value<std::string>()->value_name("NAME[,NAME...]")->default_value("transformer"),
                                  "weights: components, one after another")(
      "json", po::value<std::string>()->value_name("FILE"),
      "also write the table as JSON, of scaling beside what the file holds; - prints it "
      "instead");
  add_run_options(description, {"model", "device", "precision", "exchange", "exchange-chunks", "shares", "row-shares",
                                "head-shares", "row-chunk", "residency", "page-lock", "transport", "attention",
                                "share-gpus", "vae-profile", "scratch", "output"});
  return description;
}

void report(const BenchTable& table, const std::string& json) {
  if (json != "-") std::cout << table.text() << std::flush;
  const std::string text = table.json().dump(2) + "\n";
  if (json == "-") std::cout << text << std::flush;
  if (!json.empty() && json != "-") write_file_atomically(json, text);
}

void run_table(const std::string& name, Bench& bench, const BenchRequest& request) {
  BenchTable table(place_of(bench.session(), name));
  for (const auto& [known, run] : all_benches())
    if (known == name) run(bench, request, table);
  if (bench.session().first()) report(table, request.json);
}

RenderBenchRequest render_request(const CommandLine& line, const RunOptions& options,
                                  const std::vector<std::string>& overrides, const BenchRequest& request, int repeats) {
  return {options,
          overrides,
          request.clip,
          request.text_rows,
          positive(line, "evaluations"),
          line.get_or<std::string>("tokenizer", ""),
          repeats};
}

}  // namespace

int run_bench(const std::vector<std::string>& words) {
  const CommandLine line(bench_help(), bench_options(), words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  const std::string name = bench_named(line);
  const BenchRequest request = request_from(line);
  if (name == "render") line.required("output");
  const int repeats = positive(line, "repeats");
  std::vector<std::string> others;
  const RunOptions options = run_options_from(line, others);
  for (const std::string& word : others)
    if (name != "render" || !word.starts_with("output."))
      throw UserError("h3render bench", "", word, "is not an option of this command");
  line.required("model");

  Cluster cluster(nullptr, nullptr);
  start_log(line.log(), cluster.rank());
  try {
    if (name == "render") {
      const BenchTable table = bench_render(cluster, render_request(line, options, others, request, repeats));
      if (cluster.rank() == 0) report(table, request.json);
      return static_cast<int>(ExitCode::done);
    }
    std::optional<Session> session;
    together(cluster, [&] {
      if (name == "attention" && cluster.size() > 1)
        throw UserError("h3render bench attention", "", fmt::format("{} ranks", cluster.size()), "one rank");
      session.emplace(cluster, options);
    });
    session->connect();
    Bench bench(*session, repeats);
    if (name == "scaling")
      run_scaling(bench, request);
    else
      run_table(name, bench, request);
  } catch (const UserError& e) {
    if (cluster.rank() == 0) std::cerr << "error: " << e.what() << "\n";
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& e) {
    std::cerr << fmt::format("error: rank {} on {}: {}\n", cluster.rank(), cluster.host(), e.what());
    Cluster::abort(static_cast<int>(ExitCode::failure));
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
