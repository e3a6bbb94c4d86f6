// Pictures and clips as the vision tower takes them (spec/text.md 3.4, 3.5): scaled by the processor's rule, cut into
// patches of 16 x 16 pixels and two frames, packed so that four patches which become one token follow each other.
// Pixels stay 8-bit; a table of 256 floats normalises them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "media/image.h"
#include "text/presentation.h"

namespace h3 {

inline constexpr std::int64_t kPatchPixels = 16;
inline constexpr std::int64_t kPatchValues = 3 * 2 * kPatchPixels * kPatchPixels;

struct VisionPixels {
  VisionGrid grid;
  std::vector<std::uint8_t> patches;  // [grid.patches(), kPatchValues]
};

// The grid of a picture, and of a clip of which `samples` frames are shown (text/clip_sampling.h). Throws UserError for
// sides more than 200 to 1.
VisionGrid picture_grid(std::int64_t width, std::int64_t height);
VisionGrid clip_grid(std::int64_t samples, std::int64_t width, std::int64_t height);

// The packed patches of a picture (both frames of a patch are the picture), and of a clip's sampled frames (equal
// sizes, at least one; the last of an odd count stands twice).
VisionPixels picture_patches(const Image& picture);
VisionPixels clip_patches(std::span<const Image> samples);

// The float32 value of each 8-bit level.
const std::array<float, 256>& normalized_levels();

}  // namespace h3
