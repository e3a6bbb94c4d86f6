// Moves the two streams from noise to clean latents, one model evaluation a step. Both samplers are an Euler step to
// the next noise level (spec/dit.md 5.3); res_multistep then adds a correction from the clean estimate of the step
// before (5.4), so that estimate is all the state there is. Steps are row-local: each rank holds its own rows alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "sampling/schedule.h"
#include "scene/scene.h"

namespace h3 {

// h b2 of res_multistep for each step of a list of sigmas [E + 1], in double from the float32 values; 0 at the first
// and at the last step.
std::vector<double> multistep_weights(std::span<const float> sigmas);

// The audio weights that equal the video's correction of the carried audio variable: w_i (1 + (carry - 1) sigma_i+1),
// sigma the audio's; `carry` is video shift / audio shift.
std::vector<double> carried_weights(std::span<const float> video_sigmas, std::span<const float> audio_sigmas,
                                    double carry);

struct StepCoefficients {
  float one_minus_t = 0;  // of the step's timestep
  float ratio = 0;        // next sigma / sigma
  float weight = 0;       // of the correction; 0: none
};

struct SamplerOptions {
  SamplerKind kind = SamplerKind::euler;
  AudioCorrection audio = AudioCorrection::carried;
  double carry = 1;  // video shift / audio shift
};

struct SamplerPlan {
  std::vector<StepCoefficients> video, audio;  // equally many, one a step
  bool multistep = false;
  int steps() const { return static_cast<int>(video.size()); }
};

SamplerPlan plan_sampler(const SamplerOptions& options, const SchedulePair& schedules);

class Sampler {
 public:
  // `video` and `audio` are the shapes of this rank's rows [n, width]; n may be 0. Takes its history from `arena`:
  // nothing for Euler, two tensors a stream for res_multistep.
  Sampler(SamplerPlan plan, Arena& arena, const Shape& video, const Shape& audio);

  // One step, in place: x is the state and v the model's output of each stream, contiguous float32 of the shapes given
  // to the constructor. May be called `steps` times.
  void step(Operators& operators, Queue& queue, const Tensor& video_x, const Tensor& video_v, const Tensor& audio_x,
            const Tensor& audio_v);

  int steps() const { return plan_.steps(); }
  int steps_done() const { return done_; }

  // The clean estimates of the last step, which the next one needs; null tensors with Euler, no meaning before the
  // first step. A checkpoint stores them; to go on from one, fill them and call `resume`.
  const Tensor& previous_video() const { return video_.previous; }
  const Tensor& previous_audio() const { return audio_.previous; }
  void resume(int steps_done);

 private:
  struct History {
    Tensor previous, clean;
  };
  static void advance(Operators& operators, Queue& queue, const StepCoefficients& c, const Tensor& x, const Tensor& v,
                      History& history);

  SamplerPlan plan_;
  History video_, audio_;
  int done_ = 0;
};

}  // namespace h3
