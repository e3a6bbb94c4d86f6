// The rotary table of the video decoder's tokens (spec/vae.md 7 step 5, 8.1). Positions are local to a tile and a
// chunk: coordinates from -1 to 1 along time, row and column of the tile itself. Built on the host, so that every rank
// holds the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

// The tokens of one tile of one chunk.
struct TokenGrid {
  std::int64_t t = 0, h = 0, w = 0;
  std::int64_t tokens() const { return t * h * w; }
  bool operator==(const TokenGrid&) const = default;
};

// Rotary frequencies of an axis: channels = head_dim * rope_ratio, two a frequency, three axes. Throws UserError when
// the channels are no multiple of 6.
std::int64_t rope_frequencies(const VideoVaeConfig& config);

struct RopeTable {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> cos, sin;  // [rows, columns]; with profile R every value is an f16 value
};

// Rows: the tokens of `grid` (time, row, column), then `extra` tokens at the origin. Columns: the angles of the time
// axis, then of rows, then of columns.
RopeTable decoder_rope(const VideoVaeConfig& config, const TokenGrid& grid, std::int64_t extra, VaeProfile profile);

// Coordinate of index `i` of `n` times 2 pi, with the roundings of the profile (8.1).
float rope_base_angle(std::int64_t i, std::int64_t n, VaeProfile profile);

}  // namespace h3
