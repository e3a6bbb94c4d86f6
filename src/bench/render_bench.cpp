#include "bench/render_bench.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>

#include "base/file.h"
#include "render/agreement.h"
#include "render/manifest.h"
#include "render/partition_use.h"
#include "render/run.h"
#include "render/scene_jobs.h"
#include "text/presentation.h"
#include "weights/config_writer.h"

namespace h3 {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kWarm = "bench-warm";
constexpr const char* kMeasured = "bench";

// A folder that `synthetic:SEED:FOLDER` takes: the model's configuration and another model's tokenizer, with the vision
// tokens that this one knows.
void write_configuration(const fs::path& folder, ModelConfig config, const fs::path& tokenizer) {
  const TextConfig known = open_for_rendering(tokenizer.string(), false).config().text;
  config.text.image_token = known.image_token;
  config.text.video_token = known.video_token;
  config.text.vision_start = known.vision_start;
  config.text.vision_end = known.vision_end;
  for (const auto& [name, content] : config_files(config)) {
    fs::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, content.dump(2) + "\n");
  }
  for (const char* part : {"tokenizer", "processor"})
    if (fs::is_directory(tokenizer / part))
      fs::copy(tokenizer / part, folder / part, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

// Words until the text encoder sees `rows` rows.
std::string prompt_of(const Tokenizer& tokenizer, const TextConfig& config, std::int64_t rows, int seed) {
  static const char* const kWords[] = {"a", "red", "circle", "moves", "right", "slowly", "over", "green", "fields"};
  std::mt19937 draw(static_cast<std::mt19937::result_type>(seed));
  std::string prompt = "A clip";
  for (std::int64_t have = 0; have < rows;) {
    have = present(tokenizer, config, {prompt, {}}).rows();
    for (std::int64_t i = 0; i < (rows - have + 7) / 8; ++i)
      prompt += std::string(" ") + kWords[draw() % std::size(kWords)];
  }
  return prompt;
}

void write_scenes(const fs::path& file, const RenderBenchRequest& request, const ModelFolder& model) {
  const Tokenizer tokenizer = load_tokenizer(model);
  Json scenes = Json::array();
  for (const int seed : {1, 2})
    scenes.push_back({{"name", seed == 1 ? kWarm : kMeasured},
                      {"prompt", prompt_of(tokenizer, model.config().text, request.text_rows, seed)},
                      {"width", request.clip.width},
                      {"height", request.clip.height},
                      {"frames", request.clip.frames},
                      {"evaluations", seed == 1 ? 1 : request.evaluations},
                      {"seed", seed}});
  write_file_atomically(file, scenes.dump(2) + "\n");
}

BenchRow stage_row(const std::string& stage, double seconds, double ceiling) {
  BenchRow row;
  row.what = stage;
  row.time = {seconds, seconds, seconds, 1};
  row.ceiling = ceiling;
  return row;
}

// The stages of the measured scene beside what each could take at best, and all together.
void add_stages(const Json& seconds, const std::vector<std::pair<std::string, double>>& ceilings, BenchTable& table) {
  double sum = 0;
  for (const auto& [stage, ceiling] : ceilings) sum += ceiling;
  for (auto it = seconds.begin(); it != seconds.end(); ++it) {
    double ceiling = it.key() == "total" ? sum : 0;
    for (const auto& [stage, least] : ceilings)
      if (stage == it.key()) ceiling = least;
    table.add(stage_row(it.key(), it.value().get<double>(), ceiling));
  }
  const double total = seconds.at("total").get<double>();
  table.note(fmt::format("the render took {:.3f} times the sum of its stages' ceilings", total / sum));
}

}  // namespace

BenchTable bench_render(Cluster& cluster, const RenderBenchRequest& request) {
  RunOptions options = request.options;
  options.existing = "overwrite";
  options.resume = "restart";
  options.cache = "off";  // its scenes have one prompt, and every one of them is timed
  const fs::path output = options.output;
  const fs::path scenes = output / "bench-scenes.json";
  together(cluster, [&] {
    const ModelFolder model = open_for_rendering(request.options.model, false);
    const fs::path own = model.paths().tokenizer;
    const bool has_tokenizer = !own.empty() && (fs::exists(own / "tokenizer.json") || fs::exists(own / "vocab.json"));
    if (!request.tokenizer.empty() && has_tokenizer)
      throw UserError("--tokenizer", "", request.tokenizer, "nothing beside a model that has a tokenizer");
    if (!request.tokenizer.empty() && !model.synthetic())
      throw UserError("--tokenizer", "", request.tokenizer, "nothing beside a model with weights of its own");
    if (!request.tokenizer.empty())
      options.model = fmt::format("synthetic:{}:{}", model.seed(), (output / "bench-model").string());
    if (cluster.rank() != 0) return;
    check_output_folder(output);
    if (!request.tokenizer.empty()) write_configuration(output / "bench-model", model.config(), request.tokenizer);
    write_scenes(scenes, request, open_for_rendering(options.model, false));
  });
  RunRequest run;
  run.options = options;
  run.scenes = {scenes.string()};
  run.overrides = request.overrides;
  run.quiet = true;
  if (run_scenes(cluster, run) != ExitCode::done) throw RunError("the bench's scenes were not rendered");

  std::optional<Session> opened;
  together(cluster, [&] { opened.emplace(cluster, options); });
  Session& s = *opened;
  s.connect();
  Bench bench(s, request.repeats);
  BenchTable table(place_of(s, "render")), stages(place_of(s, "render"));
  const ClipGeometry geometry = clip_geometry(request.clip.width, request.clip.height, request.clip.frames);
  const std::int64_t rows = request.text_rows + geometry.video_rows() + geometry.audio_rows();
  const StepCeiling step = bench_operators(bench, rows, stages);
  bench_text(bench, request.text_rows, stages);
  const double text = stages.rows().back().time.median;
  bench_video(bench, request.clip, stages);
  const double video = stages.rows().back().ceiling;
  if (!s.first()) return table;
  const Json manifest = Json::parse(read_file(manifest_path(output, kMeasured)));
  add_stages(manifest.at("seconds"),
             {{"text", text}, {"denoise", step.seconds() * static_cast<double>(request.evaluations)}, {"video", video}},
             table);
  return table;
}

}  // namespace h3
