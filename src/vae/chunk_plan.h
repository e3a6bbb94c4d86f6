// How a clip's latent frames are cut into chunks that are decoded on their own (spec/vae.md 10.1), and which of a
// chunk's frames the clip keeps (10.3). A chunk gives a head, the frames that are its own, and a tail, the frames that
// the next chunk's head is cross-faded with; the last chunk's tail ends the clip.
#pragma once

#include <cstdint>

#include "parallel/shards.h"
#include "weights/model_config.h"

namespace h3 {

// The temporal grid (spec/vae.md 2): what one latent frame covers.
struct TemporalGrid {
  std::int64_t clip = 17;          // pixel frames that are encoded together
  std::int64_t token_drop = 3;     // latent frames dropped at the end of an encoded clip
  std::int64_t ratio = 4;          // pixel frames of a latent frame, the first of a clip excepted
  std::int64_t pre_pad = 3;        // pixel frames that the first latent frame of a clip lacks
  std::int64_t clip_tokens = 5;    // latent frames of `clip` pixel frames
  std::int64_t token_overlap = 2;  // latent frames that a chunk shares with the next
  std::int64_t frame_overlap = 5;  // pixel frames of those

  // Pixel frames of `tokens` latent frames: 17k + 5 for 5k + 2.
  std::int64_t frames(std::int64_t tokens) const;
  // Latent frames that encoding `frames` pixel frames gives (6.1).
  std::int64_t tokens(std::int64_t frames) const;
};

// Derives the grid. Throws UserError ("unsupported geometry") when it is not the one of spec/vae.md 2, which the
// decoder's chunk arithmetic rests on.
TemporalGrid temporal_grid(const VideoVaeConfig& config);

struct ChunkPlan {
  std::int64_t tokens = 0;   // latent frames of the clip
  std::int64_t padding = 0;  // copies of the last latent frame behind them
  std::int64_t chunks = 0;
  std::int64_t chunk_tokens = 0;  // latent frames of each chunk: 7, or 1 for a single latent frame
  std::int64_t chunk_step = 0;    // latent frames from a chunk to the next: 5
  std::int64_t frames = 0;        // pixel frames of the clip
  std::int64_t dropped = 0;       // pixel frames at the end that stand for the padding
  Range head, tail;               // kept frames among the chunk's decoded ones; `tail` is empty for a single frame
  std::int64_t decoded = 0;       // pixel frames that a chunk decodes to: 28

  // Latent frame behind token `t` of chunk `c`: the padding repeats the last one.
  std::int64_t token(std::int64_t c, std::int64_t t) const;
  // Clip frames that chunk c's head gives, cut to the clip's length.
  Range head_frames(std::int64_t c) const;
  // Clip frames of the last chunk's tail, cut to the clip's length.
  Range tail_frames() const;
};

// Plans `tokens` latent frames, any number from 1 up. Throws UserError for others.
ChunkPlan plan_chunks(const TemporalGrid& grid, std::int64_t tokens);

}  // namespace h3
