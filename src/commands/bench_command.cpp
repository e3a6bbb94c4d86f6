// h3render bench: times operators and one step, on the machine it runs on. Performance lives here, never in tests.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <random>

#include "base/error.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "parallel/cluster.h"
#include "render/progress.h"
#include "render/run_plan.h"
#include "render/session.h"

namespace h3 {

namespace po = boost::program_options;

namespace {

CommandHelp bench_help() {
  return {
      "bench",
      "times operators and a step on this machine",
      "operators|step --model DIR [options]",
      "operators: matrix products and attention at the model's shapes. step: one evaluation of the transformer on all\n"
      "ranks. Each row gives the median and the spread of the repeats, and the rate by the operations of the\n"
      "specification's formulas. Random data, after one warm-up.",
      {"h3render bench operators --model jobs/nano", "mpirun -n 2 h3render bench step --model jobs/nano --rows 425",
       "h3render bench step --model synthetic:1:jobs/nano --json"},
      ""};
}

struct Row {
  std::string what;
  double median = 0, least = 0, most = 0, flops = 0;
};

Row measure(const std::string& what, double flops, int repeats, const std::function<void()>& run) {
  run();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {what, seconds[seconds.size() / 2], seconds.front(), seconds.back(), flops};
}

// Normal values in a new buffer; float32 is drawn, then cast.
class RandomTensors {
 public:
  RandomTensors(Machine& machine, Queue& q) : machine_(machine), q_(q) {}
  Tensor make(Shape shape, DType dtype) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::normal_distribution<float> normal;
    for (float& v : values) v = normal(words_);
    Buffer wide(machine_, values.size() * sizeof(float), machine_.place());
    buffers_.emplace_back(machine_, values.size() * size_of(dtype), machine_.place());
    const Tensor t = buffers_.back().tensor(shape, dtype), w = wide.tensor(shape, DType::f32);
    machine_.copy(q_, Tensor(values.data(), shape, DType::f32), w);
    machine_.operators().cast(q_, w, t);
    q_.wait();
    return t;
  }

 private:
  Machine& machine_;
  Queue& q_;
  std::mt19937 words_{1};
  std::vector<Buffer> buffers_;
};

std::vector<Row> bench_operators(Session& s, std::int64_t rows, int repeats) {
  const TransformerConfig& t = s.config().transformer;
  const DType dtype = s.precision() == Precision::f32 ? DType::f32 : DType::bf16;
  RandomTensors random(s.machine(), s.queue());
  Operators& ops = s.machine().operators();
  std::vector<Row> table;
  const struct {
    const char* name;
    std::int64_t n, k;
  } layers[] = {{"qkv", 3 * t.inner(), t.hidden},
                {"out", t.hidden, t.inner()},
                {"fc1", 2 * t.ffn, t.hidden},
                {"fc2", t.hidden, t.ffn}};
  for (const auto& layer : layers) {
    const Tensor x = random.make({rows, layer.k}, dtype), y = random.make({rows, layer.n}, dtype);
    const LinearWeights w{random.make({layer.n, layer.k}, dtype), {}, layer.n};
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(layer.n) * static_cast<double>(layer.k);
    table.push_back(measure(fmt::format("linear {} {}x{}x{}", layer.name, rows, layer.n, layer.k), flops, repeats, [&] {
      ops.linear(s.queue(), x, w, y);
      s.queue().wait();
    }));
  }
  const Tensor qkv = random.make({rows, 3 * t.inner()}, dtype), o = random.make({rows, t.inner()}, dtype);
  const QkvViews views = qkv_views(qkv, t.head_dim);
  Operators::Attention spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(t.head_dim));
  const double flops = 4.0 * static_cast<double>(rows) * static_cast<double>(rows) * static_cast<double>(t.inner());
  table.push_back(
      measure(fmt::format("attention {} rows, {} heads of {}", rows, t.heads, t.head_dim), flops, repeats, [&] {
        ops.attention(s.queue(), views.q, views.k, views.v, o.split(1, t.heads), spec);
        s.queue().wait();
      }));
  return table;
}

std::vector<Row> bench_step(Session& s, std::int64_t rows, int repeats) {
  StageTimes times;
  const TransformerConfig& t = s.config().transformer;
  Transformer& transformer = s.transformer(times);
  // A clip of target rows behind a few text rows; what they mean does not matter here.
  Clip clip;
  clip.rows = rows;
  clip.text_rows = std::min<std::int64_t>(16, rows / 2);
  clip.segments = {{SegmentKind::text, 0, clip.text_rows, 0}, {SegmentKind::target_video, clip.text_rows, rows, 0}};
  clip.classes.assign(static_cast<std::size_t>(rows), static_cast<std::int32_t>(ModulationClass::video));
  clip.cos.assign(static_cast<std::size_t>(rows * 3 * t.rope_freqs), 0.8f);
  clip.sin.assign(clip.cos.size(), 0.6f);
  const ShardPlan plan = make_shard_plan(rows, t.heads, s.row_shares(), s.head_shares());
  std::vector<float> text(static_cast<std::size_t>(clip.text_rows * t.text_dim), 0.5f);
  transformer.begin(s.queue(), clip, plan, Tensor(text.data(), {clip.text_rows, t.text_dim}, DType::f32), {},
                    {{0.3f, 0.3f, 0.5f, 0.999f, 1.0f}});
  RandomTensors random(s.machine(), s.queue());
  const std::int64_t own = transformer.video_rows().size();
  const Tensor x = random.make({own, t.video_row()}, DType::f32), v = random.make({own, t.video_row()}, DType::f32);
  const Tensor none = random.make({0, t.audio_channels}, DType::f32);
  const double flops = step_flops(t, rows, rows, t.heads);
  return {measure(fmt::format("step {} rows on {} ranks", rows, s.cluster().size()), flops, repeats, [&] {
    transformer.forward(s.queue(), 0, x, none, v, none);
    s.queue().wait();
    s.communicator().barrier();
  })};
}

void print(const std::vector<Row>& table, const std::string& machine, bool as_json) {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  if (!as_json)
    std::cout << fmt::format("{}\n{:44} {:>12} {:>21} {:>12}\n", machine, "", "median ms", "least..most ms", "GFLOP/s");
  for (const Row& r : table) {
    j.push_back({{"what", r.what},
                 {"machine", machine},
                 {"median_seconds", r.median},
                 {"least_seconds", r.least},
                 {"most_seconds", r.most},
                 {"flops", r.flops}});
    if (!as_json)
      std::cout << fmt::format("{:44} {:>12.3f} {:>10.3f}..{:<9.3f} {:>12.1f}\n", r.what, r.median * 1e3, r.least * 1e3,
                               r.most * 1e3, r.flops / r.median / 1e9);
  }
  if (as_json) std::cout << j.dump(2) << "\n";
}

}  // namespace

int run_bench(const std::vector<std::string>& words) {
  po::options_description description;
  description.add_options()("rows", po::value<std::int64_t>()->value_name("N")->default_value(425),
                            "rows of the packed sequence")(
      "repeats", po::value<int>()->value_name("N")->default_value(5), "timed repeats")("json", "print JSON");
  add_run_options(description, {"model", "device", "precision", "exchange", "exchange-chunks", "shares", "row-shares",
                                "head-shares", "row-chunk", "residency", "transport", "attention", "share-gpus"});
  const CommandLine line(bench_help(), description, words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  if (line.words().size() != 1 || (line.words()[0] != "operators" && line.words()[0] != "step"))
    throw UserError("h3render bench", "", line.words().empty() ? "" : line.words()[0], "operators or step");
  const std::int64_t rows = line.get<std::int64_t>("rows");
  const int repeats = line.get<int>("repeats");
  if (rows < 2) throw UserError("--rows", "", std::to_string(rows), "at least 2");
  if (repeats < 1) throw UserError("--repeats", "", std::to_string(repeats), "at least 1");
  std::vector<std::string> others;
  const RunOptions options = run_options_from(line, others);
  if (!others.empty()) throw UserError("h3render bench", "", others[0], "is not an option of this command");
  line.required("model");

  Cluster cluster(nullptr, nullptr);
  start_log(line.log(), cluster.rank());
  try {
    Session session(cluster, options);
    session.connect();
    const auto table =
        line.words()[0] == "operators" ? bench_operators(session, rows, repeats) : bench_step(session, rows, repeats);
    if (session.first()) print(table, session.machine().name(), line.has("json"));
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
