// The plan of a job on the ranks of this run's groups.
#pragma once

#include "render/run_plan.h"
#include "render/scene_render.h"

namespace h3 {

// `text_rows`: of the scene's presentation.
RunPlan plan_job(const Session& session, const SceneJob& job, std::int64_t text_rows);

}  // namespace h3
