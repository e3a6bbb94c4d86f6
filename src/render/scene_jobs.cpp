#include "render/scene_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "render/chain.h"
#include "render/file_contents.h"
#include "render/manifest.h"
#include "render/partition_use.h"

namespace h3 {

namespace fs = std::filesystem;

void SceneJobs::require_all_good() const {
  if (bad.empty()) return;
  std::string all;
  for (const BadScene& scene : bad) all += (all.empty() ? "" : "\n") + scene.message;
  throw UserError(all);
}

std::vector<Partition> SceneJobs::partitions() const {
  std::vector<Partition> needed;
  for (const Partition partition : {Partition::fl2va, Partition::ref2va})
    if (std::any_of(good.begin(), good.end(), [&](const SceneJob& job) { return job.partition == partition; }))
      needed.push_back(partition);
  return needed;
}

Presentation present_scene(const SceneJob& job, const ModelConfig& model, const Tokenizer& tokenizer) {
  const Scene& scene = job.scene;
  PresentationRequest request;
  request.prompt = scene.prompt;
  request.media = presented(job.media);
  PresentationLimits limits;
  limits.prompt_tokens = scene.max_prompt_tokens;
  limits.rows = scene.max_rows;
  try {
    return present(tokenizer, model.text, request, limits);
  } catch (const UserError& e) {
    throw UserError(scene.where, scene.has_media() ? "prompt and media" : "", "", e.what());
  }
}

nlohmann::ordered_json scene_identity(const SceneJob& job) {
  return with_contents(to_json(job.scene), job.contents);
}

static void check_rows(const SceneJob& job, std::int64_t text_rows) {
  std::int64_t rows = text_rows + job.geometry.audio_rows() + job.geometry.video_rows();
  for (const MediaItem& item : job.media) rows += item.visual_rows() + item.audio_rows();
  if (rows > job.scene.max_rows)
    throw UserError(job.scene.where, "max_rows", std::to_string(job.scene.max_rows),
                    fmt::format("the scene takes {} rows with all its media", rows));
}

static SceneJob prepare_scene(Scene scene, const SceneDefaults& defaults, const ModelFolder& model,
                              const Tokenizer* tokenizer, MediaInspector& inspector, FileContents& contents) {
  check_files(scene);
  SceneJob job;
  Resolved resolved = resolve(scene, defaults, inspector.keyframe_size(scene));
  job.geometry = resolved.geometry;
  job.notes = std::move(resolved.notes);
  job.warnings = std::move(resolved.warnings);
  job.media = inspector.items(scene, job.geometry, model.config(), job.warnings);
  job.contents = contents.of(scene);
  job.partition = partition_for(scene, model);
  if (const std::string warning = partition_warning(scene, model); !warning.empty()) job.warnings.push_back(warning);
  job.scene = std::move(scene);
  if (tokenizer) check_rows(job, present_scene(job, model.config(), *tokenizer).rows());
  return job;
}

Tokenizer load_tokenizer(const ModelFolder& model) {
  if (model.paths().tokenizer.empty())
    throw UserError("--model", "", model.name(),
                    "has no tokenizer, which scenes need; name a folder that has one: synthetic:SEED:DIR");
  return Tokenizer::load(model.paths().tokenizer);
}

// What the scene takes of others is known to them, so that they keep it.
static void link_parents(const Scene& scene, SceneJobs& jobs, MediaInspector& inspector, const fs::path& output) {
  for (const FrameOfScene& of : scene.frames_taken()) {
    const auto parent = std::find_if(jobs.good.begin(), jobs.good.end(),
                                     [&](const SceneJob& job) { return job.scene.name == of.scene; });
    if (parent != jobs.good.end()) {
      inspector.know_scene(of.scene, {parent->geometry.width, parent->geometry.height});
      parent->kept_frames.insert(frame_number(of, parent->geometry.frames, scene.where));
    } else if (const auto found = find_parent(output, of.scene)) {
      inspector.know_scene(of.scene, found->size);
      frame_number(of, found->frames, scene.where);
    }
  }
}

SceneJobs prepare_scenes(const std::vector<std::string>& sources, const std::vector<std::string>& overrides,
                         const ModelFolder& folder, const Tokenizer* tokenizer, const fs::path& output) {
  std::vector<Override> parsed;
  for (const std::string& text : overrides) parsed.push_back(parse_override(text));
  SceneList list = load_scenes({sources.begin(), sources.end()}, parsed);
  SceneJobs jobs;
  jobs.bad = std::move(list.bad);
  const ModelConfig& model = folder.config();
  SceneDefaults defaults;
  defaults.canvas = {model.canvas_short_edge, model.canvas_max_pixels};
  defaults.shift = model.video_shift;
  defaults.audio_shift = model.audio_shift;
  MediaInspector inspector;
  FileContents contents;
  std::set<std::string> refused;
  for (const Scene& scene : parents_first(std::move(list.scenes), jobs.bad)) {
    try {
      for (const FrameOfScene& of : scene.frames_taken())
        if (refused.contains(of.scene)) throw UserError(scene.where, "scene", of.scene, "cannot be used itself");
      link_parents(scene, jobs, inspector, output);
      jobs.good.push_back(prepare_scene(scene, defaults, folder, tokenizer, inspector, contents));
    } catch (const UserError& e) {
      refused.insert(scene.name);
      jobs.bad.push_back({scene.name, e.what()});
    }
  }
  return jobs;
}

void check_output_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError("--output", "", folder.string(), "cannot be made: " + error.message());
  if (!fs::is_directory(folder)) throw UserError("--output", "", folder.string(), "is not a folder");
  try {
    const fs::path probe = folder / fmt::format(".h3render-{}", ::getpid());
    write_file_atomically(probe, "");
    fs::remove(probe, error);
  } catch (const SceneError& e) {
    throw UserError("--output", "", folder.string(), std::string("cannot be written into: ") + e.what());
  }
}

Existing find_existing(const fs::path& folder, const SceneJob& job, const RenderedBy& by, std::string& difference) {
  const fs::path path = manifest_path(folder, job.scene.name);
  std::error_code error;
  if (!fs::exists(path, error)) return Existing::nothing;
  const auto compare = [&](const std::string& key, const nlohmann::ordered_json& found, const std::string& wanted) {
    if (!wanted.empty() && found != wanted) difference = key;
  };
  try {
    const auto manifest = nlohmann::ordered_json::parse(read_file(path));
    const nlohmann::ordered_json wanted = scene_identity(job), found = manifest_identity(manifest);
    compare("model.identity", manifest.at("model").at("identity"), by.model_identity);
    compare("numerics.precision", manifest.at("numerics").at("precision"), by.precision);
    compare("numerics.vae_profile", manifest.at("numerics").at("vae_profile"), by.vae_profile);
    for (const auto& [key, value] : wanted.items())
      if (!found.contains(key) || found[key] != value) difference = key;
    for (const auto& [key, value] : found.items())
      if (!wanted.contains(key)) difference = key;
  } catch (const std::exception&) {
    difference = "the manifest, which cannot be read";
  }
  if (!difference.empty()) return Existing::other;
  bool whole = !job.scene.output.mp4 || fs::exists(folder / (job.scene.name + ".mp4"), error);
  for (const std::int64_t frame : job.kept_frames) whole = whole && !frame_file(folder, job.scene.name, frame).empty();
  return whole ? Existing::same : Existing::nothing;
}

}  // namespace h3
