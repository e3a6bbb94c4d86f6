// h3render bench: times operators and one step, on the machine it runs on. Performance lives here, never in tests.
#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iostream>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/hash.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "parallel/cluster.h"
#include "render/agreement.h"
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
      "operators|step|video --model DIR [options]",
      "operators: matrix products and attention at the model's shapes. step: one evaluation of the transformer on all\n"
      "ranks; on one rank also the ceiling that the operators' rates set. video: decoding a clip's frames on all "
      "ranks,\n"
      "from random latents. Each row gives the median and the spread of the repeats, and the rate by the operations of "
      "the\n"
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

// Normal values in a new buffer. A few million are drawn and repeated, so that large tensors take no time to make.
class RandomTensors {
 public:
  RandomTensors(Machine& machine, Queue& q) : machine_(machine), q_(q) {}
  Tensor make(Shape shape, DType dtype) {
    constexpr std::int64_t kDrawn = std::int64_t{1} << 22;
    const std::int64_t count = shape.elements();
    buffers_.emplace_back(machine_, static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * size_of(dtype),
                          machine_.place());
    const Tensor all = buffers_.back().tensor({count}, dtype);
    const std::int64_t n = std::min(count, kDrawn);
    if (n == 0) return buffers_.back().tensor(shape, dtype);
    std::vector<float> values(static_cast<std::size_t>(n));
    std::normal_distribution<float> normal;
    for (float& v : values) v = normal(words_);
    Buffer wide(machine_, values.size() * sizeof(float), machine_.place());
    const Tensor drawn = wide.tensor({1, n}, DType::f32), first = all.rows(0, n);
    machine_.copy(q_, Tensor(values.data(), {1, n}, DType::f32), drawn);
    machine_.operators().cast(q_, drawn, first.reshape({1, n}));
    for (std::int64_t at = n; at < count; at += n) {
      const std::int64_t part = std::min(n, count - at);
      machine_.copy(q_, first.rows(0, part), all.rows(at, at + part));
    }
    q_.wait();
    return buffers_.back().tensor(shape, dtype);
  }

 private:
  Machine& machine_;
  Queue& q_;
  std::mt19937 words_{1};
  std::deque<Buffer> buffers_;
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

// A clip of target video rows behind text rows; what the rows mean does not matter for their time.
Clip bench_clip(const TransformerConfig& t, std::int64_t rows) {
  Clip clip;
  clip.rows = rows;
  clip.text_rows = std::min<std::int64_t>(1024, rows / 4);
  clip.segments = {{SegmentKind::text, 0, clip.text_rows, 0}, {SegmentKind::target_video, clip.text_rows, rows, 0}};
  clip.classes.assign(static_cast<std::size_t>(rows), static_cast<std::int32_t>(ModulationClass::video));
  clip.cos.assign(static_cast<std::size_t>(rows * 3 * t.rope_freqs), 0.8f);
  clip.sin.assign(clip.cos.size(), 0.6f);
  return clip;
}

std::vector<Row> bench_step(Session& s, std::int64_t rows, int repeats) {
  std::vector<Row> table;
  const TransformerConfig& t = s.config().transformer;
  if (s.cluster().size() == 1) {
    table = bench_operators(s, rows, repeats);
    double layer = 0;
    for (const Row& r : table) layer += r.median;
    const double seconds = layer * static_cast<double>(t.layers);
    table.push_back({"ceiling of a step", seconds, seconds, seconds, step_flops(t, rows, rows, t.heads)});
  }
  StageTimes times;
  Transformer& transformer = s.transformer(times);
  const Clip clip = bench_clip(t, rows);
  const ShardPlan plan = make_shard_plan(rows, t.heads, s.row_shares(), s.head_shares());
  std::vector<float> text(static_cast<std::size_t>(clip.text_rows * t.text_dim));
  std::mt19937 words(2);
  std::normal_distribution<float> normal;
  for (float& v : text) v = normal(words);
  transformer.begin(s.queue(), clip, plan, Tensor(text.data(), {clip.text_rows, t.text_dim}, DType::f32), {},
                    {{0.3f, 0.3f, 0.5f, 0.999f, 1.0f}});
  RandomTensors random(s.machine(), s.queue());
  const std::int64_t own = transformer.video_rows().size();
  const Tensor x = random.make({own, t.video_row()}, DType::f32), v = random.make({own, t.video_row()}, DType::f32);
  const Tensor none = random.make({0, t.audio_channels}, DType::f32);
  const double exchange_before = transformer.exchange_seconds();
  table.push_back(measure(fmt::format("step {} rows on {} ranks", rows, s.cluster().size()),
                          step_flops(t, rows, rows, t.heads), repeats, [&] {
                            transformer.forward(s.queue(), 0, x, none, v, none);
                            s.queue().wait();
                            s.communicator().barrier();
                          }));
  const double exchange = (transformer.exchange_seconds() - exchange_before) / (repeats + 1);
  if (s.cluster().size() > 1) table.push_back({"exchange in a step, this rank", exchange, exchange, exchange, 0});
  return table;
}

std::vector<Row> bench_video(Session& s, const CommandLine& line, int repeats) {
  StageTimes times;
  VideoDecodeRequest request;
  request.height = line.get<std::int64_t>("height");
  request.width = line.get<std::int64_t>("width");
  request.latent_frames = latent_frames_of(line.get<std::int64_t>("frames"));
  request.shares = s.row_shares();
  VideoDecoder decoder(s.machine(), s.queue(), s.config().video_vae, s.weights(Component::video_vae, times),
                       s.vae_profile());
  const std::int64_t rows = request.latent_frames * (request.height / 32) * (request.width / 32);
  std::vector<float> latents(static_cast<std::size_t>(rows * s.config().transformer.video_row()));
  std::mt19937 words(3);
  std::normal_distribution<float> normal;
  for (float& v : latents) v = normal(words);
  const Tensor x(latents.data(), {rows, s.config().transformer.video_row()}, DType::f32);
  VideoDecodeCalls calls;
  Hasher hasher;
  calls.frames = [&](std::int64_t, const Tensor& frames) { hasher.add(frames.data, frames.bytes()); };
  PlanRequest plan;
  plan.model = s.config();
  plan.geometry = clip_geometry(request.width, request.height, line.get<std::int64_t>("frames"));
  plan.row_shares = plan.head_shares = {1.0};
  const auto row = measure(fmt::format("decode {} frames {}x{} on {} ranks", plan.geometry.frames, request.width,
                                       request.height, s.cluster().size()),
                           make_run_plan(plan).decode_flops, repeats, [&] {
                             hasher = Hasher();
                             decode_video(s.machine(), s.queue(), s.communicator(), decoder, x, request, calls);
                             s.communicator().barrier();
                           });
  if (s.first()) spdlog::info("frames {}", hasher.hex());
  return {row};
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
  description.add_options()("rows", po::value<std::string>()->value_name("N[,N...]")->default_value("425"),
                            "rows of the packed sequence")(
      "repeats", po::value<int>()->value_name("N")->default_value(5), "timed repeats")(
      "frames", po::value<std::int64_t>()->value_name("N")->default_value(22), "video: frames of the clip (17n + 5)")(
      "width", po::value<std::int64_t>()->value_name("N")->default_value(256), "video: pixels")(
      "height", po::value<std::int64_t>()->value_name("N")->default_value(192), "video: pixels")("json", "print JSON");
  add_run_options(description,
                  {"model", "device", "precision", "exchange", "exchange-chunks", "shares", "row-shares", "head-shares",
                   "row-chunk", "residency", "transport", "attention", "share-gpus", "vae-profile", "scratch"});
  const CommandLine line(bench_help(), description, words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  const std::string what = line.words().size() == 1 ? line.words()[0] : "";
  if (what != "operators" && what != "step" && what != "video")
    throw UserError("h3render bench", "", what, "operators, step or video");
  if (!is_legal_frame_count(line.get<std::int64_t>("frames")))
    throw UserError("--frames", "", std::to_string(line.get<std::int64_t>("frames")), "17n + 5");
  if (const auto complaint = size_complaint(line.get<std::int64_t>("width"), line.get<std::int64_t>("height")))
    throw UserError("--width, --height", "", "", *complaint);
  const std::vector<std::int64_t> rows = counts_of(line.get<std::string>("rows"), "--rows", 2);
  const int repeats = line.get<int>("repeats");
  if (repeats < 1) throw UserError("--repeats", "", std::to_string(repeats), "at least 1");
  std::vector<std::string> others;
  const RunOptions options = run_options_from(line, others);
  if (!others.empty()) throw UserError("h3render bench", "", others[0], "is not an option of this command");
  line.required("model");

  Cluster cluster(nullptr, nullptr);
  start_log(line.log(), cluster.rank());
  try {
    std::optional<Session> opened;
    together(cluster, [&] { opened.emplace(cluster, options); });
    Session& session = *opened;
    session.connect();
    std::vector<Row> table;
    if (what == "video") table = bench_video(session, line, repeats);
    for (std::size_t i = 0; what != "video" && i < rows.size(); ++i) {
      const auto more =
          what == "step" ? bench_step(session, rows[i], repeats) : bench_operators(session, rows[i], repeats);
      table.insert(table.end(), more.begin(), more.end());
    }
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
