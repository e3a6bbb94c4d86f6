// How pixel frames are cut into clips that are encoded on their own (spec/vae.md 6.1). The encoder is causal, so of the
// last clip, whose last latent frames are dropped, only the frames that the kept ones see are encoded; a clip with
// fewer repeats its last frame.
#pragma once

#include <cstdint>

#include "vae/chunk_plan.h"

namespace h3 {

struct EncodePlan {
  std::int64_t frames = 0;  // pixel frames given
  std::int64_t clips = 0;
  std::int64_t tokens = 0;       // latent frames that come out
  std::int64_t clip_frames = 0;  // pixel frames of every clip but the last, and their latent frames
  std::int64_t clip_tokens = 0;
  std::int64_t last_frames = 0;  // pixel frames of the last clip, its padding counted, and their latent frames
  std::int64_t last_tokens = 0;

  std::int64_t frames_of(std::int64_t clip) const { return clip + 1 == clips ? last_frames : clip_frames; }
  std::int64_t tokens_of(std::int64_t clip) const { return clip + 1 == clips ? last_tokens : clip_tokens; }
  // The pixel frame behind frame `f` of a clip.
  std::int64_t frame(std::int64_t clip, std::int64_t f) const;
};

// Plans `frames` pixel frames; one frame is a clip of one. Throws UserError below 1.
EncodePlan plan_encode(const TemporalGrid& grid, std::int64_t frames);

}  // namespace h3
