#include "text/clip_sampling.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {

std::vector<std::int64_t> sampled_frames(std::int64_t frames) {
  if (frames < kFewestClipFrames) {
    throw UserError("", "reference clip", fmt::format("{} frames", frames),
                    fmt::format("at least {} frames at 24 frames a second (0.54 s)", kFewestClipFrames));
  }
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < frames; i += 12) indices.push_back(i);
  return indices;
}

std::vector<double> block_times(std::int64_t samples) {
  std::vector<double> times;
  for (std::int64_t first = 0; first < samples; first += 2) {
    const std::int64_t second = std::min(first + 1, samples - 1);
    times.push_back((static_cast<double>(first) / 2 + static_cast<double>(second) / 2) / 2);
  }
  return times;
}

}  // namespace h3
