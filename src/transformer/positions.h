// Rotary positions of a packed sequence, built in float64 with the reference's operations in the reference's order
// (spec/dit.md 3.4); they become float32 once, when rotary angles are formed. Time counts audio latents (40 a second),
// so a pixel frame is 5/3.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace h3 {

using Position = std::array<double, 3>;  // time, height, width

// Positions of the patches along one axis of a block: latent size `size` of this axis, `other` of the other one; both
// even. [size / 2]
std::vector<double> spatial_axis(std::int64_t size, std::int64_t other);

// Time of each of `frames` latent frames of a block that starts at `origin`; the spans before it are summed in order.
std::vector<double> temporal_axis(std::int64_t frames, double origin);

// The length of `frames` latent frames, summed in order.
double temporal_length(std::int64_t frames);

// Time of a keyframe on the last frame of a target of `frames` latent frames that starts at `origin`; here the spans
// are summed pairwise.
double last_frame_time(std::int64_t frames, double origin);

// Time of pixel frame `frame` of a target of `frames` latent frames (5 n + 2, that is 17 n + 5 pixel frames) that
// starts at `origin`; negative frames count from the end.
double frame_time(std::int64_t frame, std::int64_t frames, double origin);

}  // namespace h3
