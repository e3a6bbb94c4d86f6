// The vision tower's units of work: a segment is a picture, or one temporal block of a clip. Attention stays inside a
// segment, so ranks take whole segments and no result depends on who took which (spec/text.md 4.5, 6.6).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/presentation.h"
#include "weights/model_config.h"

namespace h3 {

struct VisionSegment {
  std::int64_t item = 0, block = 0;    // which item, which of its temporal blocks
  std::int64_t rows = 0, columns = 0;  // patches
  std::int64_t first_token = 0;        // of the merged tokens of all items
  std::int64_t patches() const { return rows * columns; }
  std::int64_t tokens() const { return rows * columns / 4; }
};

// The segments of items in their order.
std::vector<VisionSegment> segments_of(std::span<const VisionGrid> grids);

// Operations that the tower spends on a segment.
double segment_cost(const VisionConfig& config, const VisionSegment& segment);

// Indices of each rank's segments, ascending: the costliest first to the rank with least to do, ties to the lower rank.
std::vector<std::vector<std::size_t>> deal_segments(const VisionConfig& config, std::span<const VisionSegment> segments,
                                                    int ranks);

}  // namespace h3
