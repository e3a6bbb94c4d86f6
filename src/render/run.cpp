#include "render/run.h"

#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "render/agreement.h"
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

// Whether the scene is to be rendered; decided on rank 0, which sees the output folder.
bool wanted(Session& session, const SceneJob& job) {
  std::string decision = "render";
  if (session.first() && session.options().existing != "overwrite") {
    std::string difference;
    const Existing existing = find_existing(session.options().output, job, difference);
    if (existing == Existing::same && session.options().existing == "skip") decision = "skip";
    if (existing == Existing::same && session.options().existing == "refuse") decision = "it is rendered already";
    if (existing == Existing::other)
      decision = fmt::format("the output folder holds another render of this name (it differs in {})", difference);
  }
  decision = session.communicator().broadcast_text(decision);
  if (decision == "skip" && session.first())
    spdlog::info("{}: rendered already, skipped (--existing overwrite renders it again)", job.scene.name);
  if (decision != "skip" && decision != "render")
    throw SceneError(decision + "; choose another name or folder, or --existing overwrite");
  return decision == "render";
}

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
    jobs = prepare_scenes(request.scenes, request.overrides, session->config(), session->tokenizer());
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
  for (const SceneJob& job : jobs.good) {
    try {
      if (!wanted(*session, job)) continue;
      if (session->first()) {
        for (const std::string& note : job.notes) spdlog::info("{}: {}", job.scene.name, note);
        for (const std::string& warning : job.warnings) spdlog::warn("{}: {}", job.scene.name, warning);
        std::error_code ignored;
        fs::remove(failed_path(request.options, job.scene.name), ignored);
      }
      render_scene(*session, job, progress);
    } catch (const SceneError& e) {
      progress.end_bar();
      ++failures;
      if (session->first()) record_failure(request.options, job.scene.name, e.what());
    }
  }
  if (failures > 0 && session->first())
    spdlog::error("{} of {} scenes failed", failures, jobs.good.size() + jobs.bad.size());
  return failures > 0 ? ExitCode::scenes_failed : ExitCode::done;
}

}  // namespace h3
