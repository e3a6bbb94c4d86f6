#include "render/scene_queue.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/paths.h"
#include "render/encoding_keys.h"
#include "render/failure_record.h"
#include "render/job_plan.h"
#include "render/manifest.h"
#include "render/preview.h"

namespace h3 {

namespace fs = std::filesystem;

// Operations of a whole render, to compare scenes by.
static double cost_of(Session& s, const SceneJob& job) {
  const RunPlan plan = plan_job(s, job, present_scene(job, s.config(), s.tokenizer()).rows());
  return plan.total_flops + plan.decode_flops;
}

using Costs = std::vector<std::pair<double, const SceneJob*>>;

// A scene counts for itself and for all that wait for it. Parents come before their children in the list.
static void add_children(Costs& costs) {
  for (auto child = costs.rbegin(); child != costs.rend(); ++child)
    for (const FrameOfScene& of : child->second->scene.frames_taken())
      for (auto& [cost, job] : costs)
        if (job->scene.name == of.scene) cost += child->first;
}

SceneQueue::SceneQueue(Session& session, const SceneJobs& jobs, RunControl& control, Progress& progress)
    : s_(session), control_(control), progress_(progress) {
  const nlohmann::ordered_json numerics = s_.numerics();
  by_.precision = numerics.at("precision");
  by_.vae_profile = numerics.at("vae_profile");
  ClaimOptions options;
  Costs costs;
  for (const SceneJob& job : jobs.good) {
    const std::string& name = job.scene.name;
    options.batch.push_back(name);
    open_.insert(name);
    for (const FrameOfScene& of : job.scene.frames_taken()) options.parents[name].push_back(of.scene);
    costs.emplace_back(s_.group().count() > 1 ? cost_of(s_, job) : 0, &job);
  }
  add_children(costs);
  std::stable_sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [cost, job] : costs) order_.push_back(job);
  names_ = options.batch;
  for (const BadScene& bad : jobs.bad) names_.push_back(bad.name);
  if (s_.first()) desk_ = std::make_unique<ClaimDesk>(s_.options().output, options);
}

void SceneQueue::prepare() {
  if (s_.group().count() == 1) return;
  const auto any = [&](auto&& holds) {
    const bool found = s_.cluster().rank() == 0 && std::any_of(order_.begin(), order_.end(), holds);
    return s_.world().agree_max(found ? 1 : 0) != 0;
  };
  if (any([&](const SceneJob* job) { return has_manifest(*job); })) learn_model();
  StageTimes apart;
  if (!any([&](const SceneJob* job) { return by_files(*job) == "render"; })) return;
  learn_model();
  s_.load_all(apart, texts_missing());
}

// Whether any group lacks the text states of a scene that is to be rendered. Those that are there are held, so that no
// group comes to need the text encoder later on. Frames of other scenes are not there yet.
bool SceneQueue::texts_missing() {
  const auto has_text = [&](const SceneJob* job) {
    if (by_files(*job) != "render") return true;
    if (!job->scene.frames_taken().empty()) return false;
    return s_.cache()->hold(EncodingKeys(s_, *job).text(present_scene(*job, s_.config(), s_.tokenizer())));
  };
  const bool missing = s_.first() && (!s_.cache() || !std::all_of(order_.begin(), order_.end(), has_text));
  return s_.world().agree_max(missing ? 1 : 0) != 0;
}

void SceneQueue::run() {
  constexpr std::chrono::milliseconds kPause(200);  // between looks at scenes that others hold
  s_.groups_part();
  std::vector<const SceneJob*> waiting = order_;
  while (!waiting.empty()) {
    std::vector<const SceneJob*> held;
    for (const SceneJob* job : waiting) {
      control_.boundary("before " + job->scene.name);
      control_.pause();
      if (!visit(*job)) held.push_back(job);
      if (too_many_failures()) return;
    }
    if (held.size() == waiting.size()) {
      if (s_.options().claimed == "leave") return leave(held);
      if (s_.first() && !told_)
        spdlog::info("{} scene(s) are being rendered by others, or wait for those; waiting", held.size());
      told_ = true;
      std::this_thread::sleep_for(kPause);
    }
    waiting = std::move(held);
  }
}

// The first rank waits for the files of the scene before, the others for it.
void SceneQueue::finish_writing() {
  control_.pause();
  if (writer_) {
    if (!writer_->wait().empty()) failed_.insert(writer_->scene());
    writer_.reset();
  }
  s_.communicator().barrier();
}

void SceneQueue::finish() {
  finish_writing();
  if (!s_.first() || rendered_ < 2) return;
  spdlog::info("{} scenes; between them this group's ranks stood still for {:.2f} s in all", rendered_, idle_.total());
}

// Counts the failures of all groups; the first rank decides for its group.
bool SceneQueue::too_many_failures() const {
  const auto most = s_.options().stop_after_failures;
  if (most == 0) return false;
  bool too_many = false;
  if (s_.first()) {
    const auto count =
        std::count_if(names_.begin(), names_.end(), [&](const std::string& name) { return has_failed(name); });
    too_many = count >= most;
    if (too_many) spdlog::error("{} scenes failed: the run ends (--stop-after-failures)", count);
  }
  return s_.communicator().agree_max(too_many ? 1 : 0) != 0;
}

// False: somebody else holds the scene.
bool SceneQueue::visit(const SceneJob& job) {
  // The files of a parent may still be under way.
  if (!job.scene.frames_taken().empty()) finish_writing();
  std::unique_ptr<Claim> claim;
  try {
    const Decision decision = decide(job, claim);
    if (decision.word == "held") return false;
    open_.erase(job.scene.name);
    if (decision.word == "skip") return true;
    if (decision.word != "render") throw SceneError(decision.word);
    told_ = false;
    announce(job);
    control_.scene_begins();
    ++rendered_;
    auto writer =
        render_scene({s_, progress_, control_, idle_, writer_.get()}, with_links(job, decision.links), coming(), claim);
    finish_writing();
    writer_ = std::move(writer);
  } catch (const SceneError& e) {
    progress_.end_bar();
    if (!s_.first()) return true;
    failed_.insert(job.scene.name);
    record_failure(s_, job.scene.name, e.what());
  }
  return true;
}

// Several groups take scenes as they come to them, and each would do the work of all.
ComingScenes SceneQueue::coming() const {
  ComingScenes coming;
  if (s_.group().count() > 1) return coming;
  for (const SceneJob* job : order_)
    if (open_.contains(job->scene.name)) coming.jobs.push_back(job);
  coming.is_untouched = [this](const SceneJob& job) { return is_untouched(job); };
  return coming;
}

// Neither rendered, nor stopped at a checkpoint, nor in the hands of another run. One may still take it afterwards:
// what is done for it then is done in vain.
bool SceneQueue::is_untouched(const SceneJob& job) const {
  const CheckpointPaths kept = checkpoint_paths(s_.options().output, job.scene.name);
  return !is_there(claim_path(s_.options().output, job.scene.name)) && !is_there(kept.newest) &&
         !is_there(kept.previous) && by_files(job) == "render";
}

SceneQueue::Decision SceneQueue::decide(const SceneJob& job, std::unique_ptr<Claim>& claim) {
  know_model(job);
  Decision decision;
  try {
    if (s_.first()) {
      const auto links = links_of(job);
      if (links) decision.links = *links;
      decision.word = links ? decide_first(with_links(job, *links), claim) : "held";
    }
  } catch (const SceneError& e) {
    decision.word = e.what();
  }
  nlohmann::json text{{"word", decision.word}, {"links", nlohmann::json::object()}};
  for (const auto& [key, link] : decision.links) text["links"][key] = {link.file, link.content};
  text = nlohmann::json::parse(
      s_.communicator().broadcast_text(text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  decision.word = text["word"];
  for (const auto& [key, link] : text["links"].items()) decision.links[key] = {link[0], link[1]};
  return decision;
}

bool SceneQueue::has_failed(const std::string& scene) const {
  return failed_.contains(scene) || is_of_this_run(failure_path(s_.options().output, scene));
}

// Whether a scene of this run that this one takes a frame of is not at its end.
bool SceneQueue::waits_for_parents(const SceneJob& job) const {
  const auto frames = job.scene.frames_taken();
  return std::any_of(frames.begin(), frames.end(), [&](const FrameOfScene& of) { return open_.contains(of.scene); });
}

// Nothing while it waits for parents. Throws SceneError where one has failed or its frame is not to be had.
std::optional<LinkedFrames> SceneQueue::links_of(const SceneJob& job) const {
  if (waits_for_parents(job)) return std::nullopt;
  LinkedFrames links;
  for (const FrameOfScene& of : job.scene.frames_taken()) {
    if (has_failed(of.scene)) throw SceneError(fmt::format("it takes a frame of {}, which failed", of.scene));
    links[link_key(of)] = read_link(s_.options().output, of);
  }
  return links;
}

bool SceneQueue::has_manifest(const SceneJob& job) const {
  std::error_code ignored;
  return s_.options().existing != "overwrite" &&
         fs::exists(manifest_path(s_.options().output, job.scene.name), ignored);
}

// The model's identity, hashed only where there is a render to compare with. Several groups have it before they part,
// unless there was nothing to compare with and nothing to render.
void SceneQueue::know_model(const SceneJob& job) {
  if (s_.group().count() == 1 && s_.communicator().agree_max(s_.first() && has_manifest(job) ? 1 : 0) == 0) return;
  learn_model();
}

void SceneQueue::learn_model() {
  StageTimes apart;
  by_.model_identity = s_.model_identity(apart);
}

std::string SceneQueue::decide_first(const SceneJob& job, std::unique_ptr<Claim>& claim) {
  std::string decision = by_files(job);
  if (decision == "render") {
    claim = desk_->try_claim(job.scene.name);
    // Somebody else may have finished it between the two looks.
    decision = claim ? by_files(job) : "held";
    if (decision != "render") claim.reset();
  }
  if (decision == "skip") {
    spdlog::info("{}: rendered already, skipped (--existing overwrite renders it again)", job.scene.name);
    tidy(job);
  }
  return decision == "ended" ? "skip" : decision;
}

// A run that was killed between a scene's manifest and its own end leaves checkpoints, preview and claim behind.
void SceneQueue::tidy(const SceneJob& job) const {
  const RunOptions& o = s_.options();
  std::error_code ignored;
  if (!fs::exists(claim_path(o.output, job.scene.name), ignored)) return;
  const std::unique_ptr<Claim> claim = desk_->try_claim(job.scene.name);
  if (!claim) return;
  remove_checkpoints(o.output, job.scene.name, o.checkpoint_scratch);
  remove_preview(o.output, job.scene.name);
}

// "ended": another group of this run has been through it.
std::string SceneQueue::by_files(const SceneJob& job) const {
  const RunOptions& o = s_.options();
  if (is_of_this_run(manifest_path(o.output, job.scene.name)) || is_of_this_run(failure_path(o.output, job.scene.name)))
    return "ended";
  if (o.existing == "overwrite") return "render";
  std::string difference;
  const Existing existing = find_existing(o.output, job, by_, difference);
  if (existing == Existing::same && o.existing == "skip") return "skip";
  if (existing == Existing::same) return "it is rendered already (--existing refuse)";
  if (existing == Existing::other)
    return fmt::format(
        "the output folder holds another render of this name (it differs in {}); choose another name or folder, or "
        "--existing overwrite",
        difference);
  return "render";
}

// Whether a manifest or the record of a failure was written by this run.
bool SceneQueue::is_of_this_run(const fs::path& record) const {
  std::error_code ignored;
  if (!fs::exists(record, ignored)) return false;
  try {
    const auto json = nlohmann::json::parse(read_file(record));
    return json.is_object() && json.value("run", "") == s_.run_id();
  } catch (const std::exception&) {
    return false;
  }
}

void SceneQueue::announce(const SceneJob& job) const {
  if (!s_.first()) return;
  spdlog::info("{}: begins", job.scene.name);
  for (const std::string& note : job.notes) spdlog::info("{}: {}", job.scene.name, note);
  for (const std::string& warning : job.warnings) spdlog::warn("{}: {}", job.scene.name, warning);
  std::error_code ignored;
  fs::remove(failure_path(s_.options().output, job.scene.name), ignored);
}

void SceneQueue::leave(const std::vector<const SceneJob*>& held) const {
  if (!s_.first()) return;
  for (const SceneJob* job : held) {
    const bool waits = waits_for_parents(*job);
    spdlog::info("{}: left to {}", job->scene.name,
                 waits ? "whoever renders the scene it takes a frame of" : desk_->holder(job->scene.name));
  }
}

}  // namespace h3
