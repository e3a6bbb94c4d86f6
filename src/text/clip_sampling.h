// Which frames of a reference clip the text encoder looks at, and what times it is told (spec/text.md 2.5).
#pragma once

#include <cstdint>
#include <vector>

namespace h3 {

// Fewest frames at 24 frames a second of which two are sampled.
inline constexpr std::int64_t kFewestClipFrames = 13;

// Indices of the sampled frames, two a second, of a clip of `frames` frames at 24 frames a second. Throws UserError
// where fewer than two are sampled.
std::vector<std::int64_t> sampled_frames(std::int64_t frames);

// The time in seconds of each temporal block of two samples; the last sample of an odd count stands twice.
std::vector<double> block_times(std::int64_t samples);

}  // namespace h3
