#include "render/run.h"

#include <malloc.h>

#include <functional>
#include <optional>
#include <set>

#include "base/log.h"
#include "render/agreement.h"
#include "render/failure_record.h"
#include "render/feasibility.h"
#include "render/resume_check.h"
#include "render/run_control.h"
#include "render/scene_jobs.h"
#include "render/scene_queue.h"
#include "render/session.h"

namespace h3 {

namespace {

std::string scenes_text(const SceneJobs& jobs) {
  std::string text;
  for (const SceneJob& job : jobs.good) text += scene_identity(job).dump() + "\n";
  return text;
}

void print_options(const RunOptions& options) {
  std::string text;
  const nlohmann::ordered_json all = to_json(options);
  for (const auto& [name, value] : all.items()) text += fmt::format(" {}={}", name, value.dump());
  spdlog::info("options:{}", text);
}

// Whether the run was stopped in `part`.
bool is_stopped(const Session& session, Progress& progress, const std::function<void()>& part) {
  try {
    part();
    return false;
  } catch (const RunStopped& e) {
    progress.end_bar();
    if (session.first()) spdlog::warn("stopped: {}; exit 75, run again to go on", e.what());
    return true;
  }
}

void go_through(SceneQueue& queue, const Session& session) {
  try {
    queue.run();
  } catch (const UserError& e) {
    // Ranks of other groups do not know of it.
    if (session.group().count() > 1) throw RunError(e.what());
    throw;
  }
}

// Of all groups together: stopped before failed before done.
ExitCode exit_code(Session& session, const SceneJobs& jobs, const std::set<std::string>& failed_here, bool stopped) {
  if (session.world().agree_max(stopped ? 1 : 0) != 0) return ExitCode::stopped;
  std::set<std::string> failed;
  for (const std::string& names : session.world().gather_text(nlohmann::json(failed_here).dump()))
    failed.merge(nlohmann::json::parse(names).get<std::set<std::string>>());
  for (const BadScene& bad : jobs.bad) failed.insert(bad.name);
  if (failed.empty()) return ExitCode::done;
  if (session.cluster().rank() == 0)
    spdlog::error("{} of {} scenes failed", failed.size(), jobs.good.size() + jobs.bad.size());
  return ExitCode::scenes_failed;
}

}  // namespace

// Every scene has helper threads of its own (files, checkpoints). glibc would give each an arena that it fills anew and
// returns late, and a long batch would seem to grow; few arenas keep it flat.
static void keep_memory_flat() {
  constexpr int kArenas = 2;
  ::mallopt(M_ARENA_MAX, kArenas);
}

ExitCode run_scenes(Cluster& cluster, const RunRequest& request) {
  keep_memory_flat();
  std::optional<Session> session;
  SceneJobs jobs;
  together(cluster, [&] {
    if (request.options.model.empty())
      throw UserError("--model", "", "", "is missing: a model folder or synthetic:SEED");
    if (request.scenes.empty()) throw UserError("h3render render", "", "", "no scene was given");
    if (cluster.rank() == 0) check_output_folder(request.options.output);
    session.emplace(cluster, request.options);
    session->fail_if_asked("validate");
    jobs = prepare_scenes(request.scenes, request.overrides, session->model(), &session->tokenizer(),
                          request.options.output);
    session->expect(jobs.partitions());
    if (!request.options.keep_going) jobs.require_all_good();
    if (!request.options.dump.empty() && jobs.good.size() + jobs.bad.size() != 1)
      throw UserError("--dump", "", request.options.dump, "takes one scene");
  });
  together(cluster, [&] {
    const std::string doubt = check_feasible(*session, jobs);
    if (!doubt.empty() && cluster.rank() == 0) spdlog::warn("{}", doubt);
  });
  session->connect();
  require_agreement(session->world(), cluster.host(),
                    {{"build", build_id()},
                     {"options", to_json(request.options).dump()},
                     {"scenes", scenes_text(jobs)},
                     {"model", session->model_fingerprint()}});
  if (cluster.rank() == 0) {
    print_options(request.options);
    for (const std::string& note : session->model().notes()) spdlog::info("model: {}", note);
  }

  // Bars of several groups would write over each other.
  Progress progress(session->first() && !request.quiet, session->group().count() == 1);
  RunControl control(*session);
  std::optional<SceneQueue> queue;
  bool stopped = is_stopped(*session, progress, [&] {
    check_checkpoints(*session, jobs);
    if (!request.options.keep_going) jobs.require_all_good();
    if (cluster.rank() == 0)
      for (const BadScene& bad : jobs.bad) record_failure(*session, bad.name, bad.message);
    queue.emplace(*session, jobs, control, progress);
    queue->prepare();
  });
  if (!stopped) stopped = is_stopped(*session, progress, [&] { go_through(*queue, *session); });
  if (queue) queue->finish();
  control.wait_for_groups();
  return exit_code(*session, jobs, queue ? queue->failed() : std::set<std::string>{}, stopped);
}

}  // namespace h3
