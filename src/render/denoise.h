// From noise to clean latents: the schedule's steps of the transformer over this rank's rows, and the gathering of
// what every rank holds. Latents are float32 rows in packed order, the same on every rank when they are whole.
#pragma once

#include <functional>
#include <vector>

#include "parallel/communicator.h"
#include "sampling/sampler.h"
#include "transformer/transformer.h"

namespace h3 {

// Latents between two steps; `step` evaluations are done.
struct LatentState {
  std::vector<float> video;  // [T * R, video_row]
  std::vector<float> audio;  // [2 A, audio_channels]
  std::int64_t step = 0;
  // The clean estimates of the step before, which res_multistep needs to go on; empty otherwise.
  std::vector<float> previous_video, previous_audio;
};

// What one step took, over all ranks.
struct StepReport {
  std::int64_t step = 0, steps = 0;              // this one counts from 1
  double seconds = 0;                            // of the slowest rank
  double exchange_least = 0, exchange_most = 0;  // seconds inside exchanges, waiting included, by rank
  double bytes = 0;                              // received by all ranks together
  // Of the rank with most: resident on the host at its peak so far; taken of the GPU during the step, 0 on CPUs.
  double host_memory = 0, device_memory = 0;
};

struct DenoiseCalls {
  std::function<void(const StepReport&)> step;
  // Whether `latents` wants the state after `step` steps; asked on every rank alike.
  std::function<bool(std::int64_t step)> wants_latents;
  // The whole latents after a step, gathered for this.
  std::function<void(const LatentState&)> latents;
  // Whether `estimate` wants the video's clean estimate after `step` steps; asked on every rank alike.
  std::function<bool(std::int64_t step)> wants_estimate;
  // Where the last step's velocity leads: x + sigma v, whole on every rank, rows as LatentState::video.
  std::function<void(const std::vector<float>& video)> estimate;
  // Called before each step; may throw.
  std::function<void(std::int64_t step)> before_step;
};

// Runs the plan from `initial` (noise, or what a checkpoint kept) to its end and returns the final latents, whole on
// every rank. The transformer has begun the clip.
LatentState denoise(Machine& machine, Queue& q, Communicator& communicator, Transformer& transformer, const Clip& clip,
                    const ShardPlan& plan, const TransformerConfig& config, const SamplerPlan& sampler,
                    const LatentState& initial, const DenoiseCalls& calls);

}  // namespace h3
