// h3render bench: the benches of src/bench by name. Performance lives here, never in tests.
#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "bench/benches.h"
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
      "ceiling|attention|step|video --model DIR [options]",
      "ceiling: what bounds a render here: matrix products and attention at the model's shapes, the exchange's\n"
      "collectives over the ranks, copies between host and device. attention: the attention kernels of this card in\n"
      "turns, with clock, power and their error against float32. step: one evaluation of the transformer on all "
      "ranks,\n"
      "beside its ceiling. video (or vae): decoding a clip's frames on all ranks, from random latents. Each row gives\n"
      "the median and the spread of the repeats after one warm-up, on random data; rates count the operations of the\n"
      "specification's formulas; MFU is the share of the card's dense bf16 peak, where it is known.",
      {"h3render bench ceiling --model jobs/nano", "mpirun -n 2 h3render bench step --model jobs/nano --rows 425",
       "h3render bench step --model synthetic:1:jobs/nano --json step.json",
       "h3render bench attention --model synthetic:1 --rows 38734,74410 --heads 56,28"},
      ""};
}

struct BenchRequest {
  std::vector<std::int64_t> rows, heads;
  ClipSize clip;
  int rounds = 3;
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
      {"video",
       [](Bench& bench, const BenchRequest& request, BenchTable& table) { bench_video(bench, request.clip, table); }}};
  return benches;
}

const std::pair<std::string, RunBench>& bench_named(const CommandLine& line) {
  std::string name = line.words().size() == 1 ? line.words()[0] : "";
  if (name == "vae") name = "video";
  std::string known;
  for (const auto& bench : all_benches()) {
    if (bench.first == name) return bench;
    known += (known.empty() ? "" : ", ") + bench.first;
  }
  throw UserError("h3render bench", "", name, "one of " + known);
}

int positive(const CommandLine& line, const std::string& option) {
  const int value = line.get<int>(option);
  if (value < 1) throw UserError("--" + option, "", std::to_string(value), "at least 1");
  return value;
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
      "frames", po::value<std::int64_t>()->value_name("N")->default_value(22), "video: frames of the clip (17n + 5)")(
      "width", po::value<std::int64_t>()->value_name("N")->default_value(256), "video: pixels")(
      "height", po::value<std::int64_t>()->value_name("N")->default_value(192), "video: pixels")(
      "json", po::value<std::string>()->value_name("FILE"), "also write the table as JSON; - prints it instead");
  add_run_options(description,
                  {"model", "device", "precision", "exchange", "exchange-chunks", "shares", "row-shares", "head-shares",
                   "row-chunk", "residency", "transport", "attention", "share-gpus", "vae-profile", "scratch"});
  return description;
}

void report(const BenchTable& table, const std::string& json) {
  if (json != "-") std::cout << table.text() << std::flush;
  const std::string text = table.json().dump(2) + "\n";
  if (json == "-") std::cout << text << std::flush;
  if (!json.empty() && json != "-") write_file_atomically(json, text);
}

}  // namespace

int run_bench(const std::vector<std::string>& words) {
  const CommandLine line(bench_help(), bench_options(), words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  const auto& [name, run] = bench_named(line);
  const BenchRequest request = request_from(line);
  const int repeats = positive(line, "repeats");
  std::vector<std::string> others;
  const RunOptions options = run_options_from(line, others);
  if (!others.empty()) throw UserError("h3render bench", "", others[0], "is not an option of this command");
  line.required("model");

  Cluster cluster(nullptr, nullptr);
  start_log(line.log(), cluster.rank());
  try {
    std::optional<Session> session;
    together(cluster, [&] {
      if (name == "attention" && cluster.size() > 1)
        throw UserError("h3render bench attention", "", fmt::format("{} ranks", cluster.size()), "one rank");
      session.emplace(cluster, options);
    });
    session->connect();
    Bench bench(*session, repeats);
    BenchTable table(place_of(*session, name));
    run(bench, request, table);
    if (session->first()) report(table, line.get_or<std::string>("json", ""));
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
