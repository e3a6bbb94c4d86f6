#include "vae/encode_plan.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace h3 {

std::int64_t EncodePlan::frame(std::int64_t clip, std::int64_t f) const {
  return std::min(clip * clip_frames + f, frames - 1);
}

EncodePlan plan_encode(const TemporalGrid& grid, std::int64_t frames) {
  if (frames < 1) throw UserError("clip to encode", "frames", std::to_string(frames), "1 or more");
  EncodePlan plan;
  plan.frames = frames;
  plan.tokens = grid.tokens(frames);
  plan.clip_frames = grid.clip;
  plan.clip_tokens = grid.clip_tokens;
  plan.clips = (frames + grid.clip - 1) / grid.clip;
  plan.last_tokens = plan.tokens - (plan.clips - 1) * grid.clip_tokens;
  plan.last_frames = grid.frames(plan.last_tokens);
  return plan;
}

}  // namespace h3
