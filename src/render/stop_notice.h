// How long before its end a batch job has to be told to stop, so that the step it is at ends and its checkpoint is
// written: the N of `sbatch --signal=B:USR1@N`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "render/run_plan.h"
#include "scene/scene.h"

namespace h3 {

struct StopNotice {
  double step_seconds = 0;
  double checkpoint_bytes = 0;  // of a step's file
  std::int64_t seconds = 0;     // the advice
};

// A step and a bit, a write at a rate that shared file systems reach under load, and the time to pass the signal on and
// to leave.
StopNotice advise_stop(double step_seconds, double checkpoint_bytes);

// Bytes of a step's checkpoint: latents in f32, and the clean estimates of the step before where the sampler has them.
double checkpoint_bytes(const PlanRequest& request, SamplerKind sampler);

std::string text_of(const StopNotice& notice);
nlohmann::ordered_json to_json(const StopNotice& notice);

}  // namespace h3
