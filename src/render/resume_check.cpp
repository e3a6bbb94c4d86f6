#include "render/resume_check.h"

#include <algorithm>
#include <map>

#include "checkpoint/paths.h"
#include "render/claim_record.h"
#include "render/manifest.h"
#include "render/scene_checkpoint.h"

namespace h3 {

namespace {

// Whether a run that may be alive is at this scene, or just finished it: then its files change while they are read.
bool in_other_hands(const Session& session, const std::string& name) {
  const std::filesystem::path folder = session.options().output;
  const auto claim = look_at_claim(claim_path(folder, name));
  if (claim) return !claim->record || state_of(claim->record->owner) != OwnerState::gone;
  return !has_checkpoint(session, name);
}

// Why the scene's checkpoint cannot be used, or "".
std::string what_is_wrong(const Session& session, const SceneJob& job, const nlohmann::ordered_json& identity) {
  try {
    read_resumable(session, job, identity);
  } catch (const UserError& e) {
    if (!in_other_hands(session, job.scene.name)) return e.what();
  }
  return "";
}

}  // namespace

void check_checkpoints(Session& session, SceneJobs& jobs) {
  if (session.options().resume == "restart") return;
  // A scene with a manifest does not go on. What a scene takes from another one is known when that one is done.
  const auto stopped = [&](const SceneJob& job) {
    const RunOptions& run = session.options();
    if (run.existing != "overwrite" && is_there(manifest_path(run.output, job.scene.name))) return false;
    return has_checkpoint(session, job.scene.name) && job.scene.frames_taken().empty();
  };
  const bool any = session.cluster().rank() == 0 && std::any_of(jobs.good.begin(), jobs.good.end(), stopped);
  if (session.world().agree_max(any ? 1 : 0) == 0) return;
  StageTimes apart;
  session.model_identity(apart);
  std::map<std::string, std::string> wrong;
  if (session.cluster().rank() == 0)
    for (const SceneJob& job : jobs.good)
      if (stopped(job)) {
        const std::string error = what_is_wrong(session, job, checkpoint_identity(session, job, apart));
        if (!error.empty()) wrong[job.scene.name] = error;
      }
  const nlohmann::json all = nlohmann::json::parse(session.world().broadcast_text(nlohmann::json(wrong).dump()));
  std::erase_if(jobs.good, [&](const SceneJob& job) {
    const auto found = all.find(job.scene.name);
    if (found == all.end()) return false;
    jobs.bad.push_back({job.scene.name, found->get<std::string>()});
    return true;
  });
}

}  // namespace h3
