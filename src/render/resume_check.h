// What a run that would go on finds out about the checkpoints of all its scenes before it loads anything: one of
// another scene, model or numerics, of a newer schema, no checkpoint at all, or two that storage damaged are bad input, as
// a bad scene is: a person decides whether the scene starts again.
#pragma once

#include "render/scene_jobs.h"
#include "render/session.h"

namespace h3 {

// Collective over the world. Moves the scenes whose checkpoints cannot be used under --resume from jobs.good to
// jobs.bad, alike on every rank. Changes no file. Left to the scene's own turn: a checkpoint that another run
// may be writing, and one of a scene that takes frames of others.
void check_checkpoints(Session& session, SceneJobs& jobs);

}  // namespace h3
