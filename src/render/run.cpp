#include "render/run.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "render/agreement.h"
#include "render/manifest.h"
#include "render/run_control.h"
#include "render/scene_jobs.h"
#include "render/session.h"

namespace h3 {

namespace {

namespace fs = std::filesystem;

std::string scenes_text(const SceneJobs& jobs) {
  std::string text;
  for (const SceneJob& job : jobs.good) text += to_json(job.scene).dump() + "\n";
  return text;
}

fs::path failed_path(const RunOptions& options, const std::string& name) {
  return fs::path(options.output) / (name + ".failed.json");
}

void record_failure(const RunOptions& options, const std::string& name, const std::string& error) {
  spdlog::error("{}: {}", name, error);
  try {
    const nlohmann::ordered_json record{{"scene", name}, {"error", error}};
    write_file_atomically(failed_path(options, name), record.dump(2) + "\n");
  } catch (const SceneError& e) {
    spdlog::error("{}", e.what());
  }
}

// The scenes of a run one after another. Rank 0 decides about each and takes its claim; the others follow.
class SceneQueue {
 public:
  SceneQueue(Session& session, const SceneJobs& jobs, RunControl& control, Progress& progress)
      : s_(session), jobs_(jobs), control_(control), progress_(progress) {
    const nlohmann::ordered_json numerics = s_.numerics();
    by_.precision = numerics.at("precision");
    by_.vae_profile = numerics.at("vae_profile");
    if (!s_.first()) return;
    ClaimOptions options;
    for (const SceneJob& job : jobs.good) options.batch.push_back(job.scene.name);
    desk_ = std::make_unique<ClaimDesk>(s_.options().output, options);
  }

  // Renders what can be rendered; returns the number of scenes that failed. `failed_before` counts towards
  // --stop-after-failures.
  std::size_t run(std::size_t failed_before) {
    std::vector<const SceneJob*> waiting;
    for (const SceneJob& job : jobs_.good) waiting.push_back(&job);
    while (!waiting.empty()) {
      std::vector<const SceneJob*> held;
      for (const SceneJob* job : waiting) {
        control_.boundary("before " + job->scene.name);
        control_.pause();
        if (!visit(*job)) held.push_back(job);
        if (too_many_failures(failed_before)) return failures_;
      }
      if (held.size() == waiting.size()) {
        if (s_.options().claimed == "leave") return leave(held);
        if (s_.first() && !told_) spdlog::info("{} scene(s) are being rendered by other runs; waiting", held.size());
        told_ = true;
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      waiting = std::move(held);
    }
    return failures_;
  }

 private:
  bool too_many_failures(std::size_t failed_before) const {
    const auto most = static_cast<std::size_t>(s_.options().stop_after_failures);
    if (most == 0 || failures_ + failed_before < most) return false;
    if (s_.first()) spdlog::error("{} scenes failed: the run ends (--stop-after-failures)", failures_ + failed_before);
    return true;
  }

  // False: another run holds the scene.
  bool visit(const SceneJob& job) {
    std::unique_ptr<Claim> claim;
    try {
      const std::string decision = decide(job, claim);
      if (decision == "skip") return true;
      if (decision == "held") return false;
      if (decision != "render") throw SceneError(decision);
      told_ = false;
      announce(job);
      control_.scene_begins();
      render_scene(s_, job, progress_, control_, claim.get());
    } catch (const SceneError& e) {
      progress_.end_bar();
      ++failures_;
      if (s_.first()) record_failure(s_.options(), job.scene.name, e.what());
    }
    return true;
  }

  // "render" (with the claim on rank 0), "skip", "held", or what is wrong.
  std::string decide(const SceneJob& job, std::unique_ptr<Claim>& claim) {
    know_model(job);
    std::string decision;
    try {
      if (s_.first()) decision = decide_first(job, claim);
    } catch (const SceneError& e) {
      decision = e.what();
    }
    return s_.communicator().broadcast_text(decision);
  }

  // The model's identity, hashed only where there is a render to compare with.
  void know_model(const SceneJob& job) {
    const RunOptions& o = s_.options();
    std::error_code ignored;
    const bool compares =
        s_.first() && o.existing != "overwrite" && fs::exists(manifest_path(o.output, job.scene.name), ignored);
    if (s_.communicator().agree_max(compares ? 1 : 0) == 0) return;
    StageTimes apart;
    by_.model_identity = s_.model_identity(apart);
  }

  std::string decide_first(const SceneJob& job, std::unique_ptr<Claim>& claim) {
    std::string decision = by_existing_files(job);
    if (decision == "render") {
      claim = desk_->try_claim(job.scene.name);
      // Another run may have finished it between the two looks.
      decision = claim ? by_existing_files(job) : "held";
      if (decision != "render") claim.reset();
    }
    if (decision == "skip")
      spdlog::info("{}: rendered already, skipped (--existing overwrite renders it again)", job.scene.name);
    return decision;
  }

  std::string by_existing_files(const SceneJob& job) const {
    const RunOptions& o = s_.options();
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

  void announce(const SceneJob& job) const {
    if (!s_.first()) return;
    for (const std::string& note : job.notes) spdlog::info("{}: {}", job.scene.name, note);
    for (const std::string& warning : job.warnings) spdlog::warn("{}: {}", job.scene.name, warning);
    std::error_code ignored;
    fs::remove(failed_path(s_.options(), job.scene.name), ignored);
  }

  std::size_t leave(const std::vector<const SceneJob*>& held) const {
    for (const SceneJob* job : held)
      if (s_.first()) spdlog::info("{}: left to {}", job->scene.name, desk_->holder(job->scene.name));
    return failures_;
  }

  Session& s_;
  const SceneJobs& jobs_;
  RunControl& control_;
  Progress& progress_;
  std::unique_ptr<ClaimDesk> desk_;
  RenderedBy by_;
  std::size_t failures_ = 0;
  bool told_ = false;
};

void print_options(const RunOptions& options) {
  std::string text;
  const nlohmann::ordered_json all = to_json(options);
  for (const auto& [name, value] : all.items()) text += fmt::format(" {}={}", name, value.dump());
  spdlog::info("options:{}", text);
}

}  // namespace

ExitCode run_scenes(Cluster& cluster, const RunRequest& request) {
  std::optional<Session> session;
  SceneJobs jobs;
  together(cluster, [&] {
    if (request.options.model.empty())
      throw UserError("--model", "", "", "is missing: a model folder or synthetic:SEED");
    if (request.scenes.empty()) throw UserError("h3render render", "", "", "no scene was given");
    if (cluster.rank() == 0) check_output_folder(request.options.output);
    session.emplace(cluster, request.options);
    session->fail_if_asked("validate");
    jobs = prepare_scenes(request.scenes, request.overrides, session->config(), &session->tokenizer());
    if (!request.options.keep_going) jobs.require_all_good();
    if (!request.options.dump.empty() && jobs.good.size() + jobs.bad.size() != 1)
      throw UserError("--dump", "", request.options.dump, "takes one scene");
  });
  session->connect();
  Communicator& world = session->communicator();
  require_agreement(world, cluster.host(),
                    {{"build", build_id()},
                     {"options", to_json(request.options).dump()},
                     {"scenes", scenes_text(jobs)},
                     {"model", session->model_fingerprint()}});
  if (session->first()) {
    print_options(request.options);
    for (const std::string& note : session->model().notes()) spdlog::info("model: {}", note);
  }

  std::size_t failures = jobs.bad.size();
  for (const BadScene& bad : jobs.bad)
    if (session->first()) record_failure(request.options, bad.name, bad.message);
  Progress progress(cluster.rank(), request.quiet);
  RunControl control(*session);
  SceneQueue queue(*session, jobs, control, progress);
  try {
    failures += queue.run(failures);
  } catch (const RunStopped& e) {
    progress.end_bar();
    if (session->first()) spdlog::warn("stopped: {}; exit 75, run again to go on", e.what());
    return ExitCode::stopped;
  }
  if (failures > 0 && session->first())
    spdlog::error("{} of {} scenes failed", failures, jobs.good.size() + jobs.bad.size());
  return failures > 0 ? ExitCode::scenes_failed : ExitCode::done;
}

}  // namespace h3
