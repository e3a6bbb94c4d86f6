// The noise levels (sigmas) of a render, one schedule a stream: video and audio have their own shifts and equal step
// counts. The unit of effort is an evaluation of the model, so E evaluations are E + 1 grid points, the last one 0
// (spec/dit.md 5.1, 5.2). Every float32 operation is the reference's, so the bits are too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace h3 {

struct Schedule {
  std::vector<float> sigmas;     // [E + 1], strictly decreasing to 0
  std::vector<float> timesteps;  // [E], 1 - sigma: what the model is told
  int evaluations() const { return static_cast<int>(timesteps.size()); }
};

// float32 linspace(1, 0, evaluations + 1). evaluations >= 1.
std::vector<float> base_grid(int evaluations);

// The base grid bent by `shift`: sigma = shift b / (1 + (shift - 1) b); a value equal to the one before it is dropped.
// Throws UserError (naming `where`) for evaluations outside 1..100000 or a shift that is not positive and finite.
Schedule shifted_schedule(int evaluations, double shift, const std::string& where);

// A list of the user's, verbatim. Throws UserError (naming `where` and `field`) unless it has at least two values, all
// of (0, 1] but a last 0, strictly decreasing as float32.
Schedule explicit_schedule(std::span<const double> sigmas, const std::string& where, const std::string& field);

// The audio list that belongs to a list of video sigmas: each value is unshifted by the video shift and shifted by the
// audio's, in double (spec/dit.md 5.4). Shifts are positive.
std::vector<double> audio_sigmas_for(std::span<const double> video_sigmas, double video_shift, double audio_shift);

struct SchedulePair {
  Schedule video, audio;
};

// Both streams' schedules. Throws UserError (naming `where`) when their evaluations differ, as those of explicit lists
// of different lengths, or of a shift so extreme that neighbouring values coincide.
SchedulePair pair_schedules(Schedule video, Schedule audio, const std::string& where);

}  // namespace h3
