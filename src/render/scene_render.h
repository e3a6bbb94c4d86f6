// One scene from prompt to files: text -> packed sequence -> steps -> latents -> frames and samples -> MP4 and
// manifest. All ranks of the group call together; the first hands what comes out to a thread that writes.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "render/claim.h"
#include "render/idle_time.h"
#include "render/progress.h"
#include "render/run_control.h"
#include "render/scene_media.h"
#include "render/session.h"
#include "scene/scene.h"
#include "scene/scene_rules.h"

namespace h3 {

// A scene that is ready to render: resolved, with what was decided on the way.
struct SceneJob {
  Scene scene;
  ClipGeometry geometry;
  std::vector<MediaItem> media;                 // in packed order
  std::map<std::string, std::string> contents;  // hashes of its files, by absolute name
  Partition partition = Partition::fl2va;       // the transformer that renders it
  std::set<std::int64_t> kept_frames;           // that other scenes take
  std::vector<std::string> notes, warnings;
};

class SceneWriter;

// Scenes of the queue that may come after this one, in its order.
struct ComingScenes {
  std::vector<const SceneJob*> jobs;  // the same on all ranks of the group
  // First rank: whether nobody has begun this one.
  std::function<bool(const SceneJob&)> is_untouched;
};

// What all scenes of a group have in common.
struct SceneSurroundings {
  Session& session;
  Progress& progress;
  RunControl& control;
  IdleTime& idle;
  const SceneWriter* before;  // of the scene before, on the first rank, where it may still be at work
};

// Renders one scene into the session's output folder, with regard to those that come, and returns, on the first rank,
// what still writes its files; it then holds the claim too. Throws SceneError on every rank alike when this scene
// cannot be finished, RunStopped where the run has to stop; anything else ends the run. `claim` is the first rank's;
// the others' is null.
std::unique_ptr<SceneWriter> render_scene(const SceneSurroundings& surroundings, const SceneJob& job,
                                          const ComingScenes& coming, std::unique_ptr<Claim>& claim);

}  // namespace h3
