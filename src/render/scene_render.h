// One scene from prompt to files: text -> packed sequence -> steps -> latents -> frames and samples -> MP4 and
// manifest. All ranks call together; rank 0 writes.
#pragma once

#include "render/claim.h"
#include "render/progress.h"
#include "render/run_control.h"
#include "render/session.h"
#include "scene/scene.h"
#include "scene/scene_rules.h"

namespace h3 {

// A scene that is ready to render: resolved, with what was decided on the way.
struct SceneJob {
  Scene scene;
  ClipGeometry geometry;
  std::vector<std::string> notes, warnings;
};

// Renders one scene into the session's output folder. Throws SceneError on every rank alike when this scene cannot be
// finished; anything else ends the run.
// `claim` is rank 0's; the others pass null. Throws RunStopped where the run has to stop.
void render_scene(Session& session, const SceneJob& job, Progress& progress, RunControl& control, Claim* claim);

}  // namespace h3
