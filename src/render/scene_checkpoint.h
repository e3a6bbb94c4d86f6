// A scene's checkpoints as a render sees them: rank 0 reads and writes files, every rank gets what was read. Steps are
// handed to a thread that writes them while the next one runs.
#pragma once

#include <memory>
#include <optional>

#include "checkpoint/resume.h"
#include "checkpoint/writer.h"
#include "render/denoise.h"
#include "render/media_latents.h"
#include "render/scene_render.h"

namespace h3 {

// What a run that goes on must agree with: scene (without how it is written to files), model, adapters, numerics.
nlohmann::ordered_json checkpoint_identity(Session& session, const SceneJob& job, StageTimes& times);

// Rank 0. Whether a checkpoint of the scene stands in the output folder, or may stand on the scratch disk.
bool has_checkpoint(const Session& session, const std::string& scene);

// Rank 0: reads what there is of this scene, and changes nothing. Throws UserError where it cannot be used under
// --resume: another scene, model or numerics (resume), anything at all (refuse); DamagedCheckpoint.
std::optional<ResumePoint> read_resumable(const Session& session, const SceneJob& job,
                                          const nlohmann::ordered_json& identity);

// The same, told in the log, for a scene that begins: nothing where its inputs were lost, or under --resume restart,
// which discards what there is.
std::optional<ResumePoint> find_checkpoint(const Session& session, const SceneJob& job,
                                           const nlohmann::ordered_json& identity);

// Text states, conditions and latents of a stopped render, whole on every rank.
struct ResumedScene {
  LatentState state;
  ConditionValues conditions;
  Buffer text_memory;
  Tensor text;  // host
};
// Collective. Nothing where rank 0 brings nothing.
std::optional<ResumedScene> share_checkpoint(Session& session, const std::optional<ResumePoint>& found);

class SceneCheckpoints {
 public:
  // Rank 0 writes; other ranks hold an object that does nothing. `identity` as above; `text` are the states [L, width],
  // `conditions` the rows that the transformer takes beside them.
  // `claim` (may be null) is asked before files get their names.
  SceneCheckpoints(Session& session, const SceneJob& job, const nlohmann::ordered_json& identity, const Tensor& text,
                   const std::vector<std::uint8_t>& tags, const ConditionValues& conditions,
                   const SchedulePair& schedules, const Claim* claim);
  // Whether the state after this step is to be kept, by --checkpoint-steps and --checkpoint-seconds. Collective.
  bool due(std::int64_t step, std::int64_t steps);
  void keep(const LatentState& state);
  // Waits until the last state is on disk. Errors are logged: a render that can go on does.
  void finish();
  // The scene is complete: its checkpoints go. One that cannot be removed is logged; the scene is done all the same.
  void remove();

 private:
  void report(const std::string& error);

  Session& session_;
  std::string name_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::string inputs_hash_;
  SchedulePair schedules_;
  double last_ = 0;  // seconds of the steady clock at the last state kept
};

}  // namespace h3
