#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace h3 {

// h b2 of one step with tau = -ln sigma; 0 where it is not a number.
static double multistep_weight(double before, double sigma, double next) {
  const double h = std::log(sigma / next);
  const double c2 = std::log(sigma / before) / h;
  const double phi1 = -std::expm1(-h) / h;
  const double phi2 = (1.0 - phi1) / h;
  const double weight = h * (phi2 / c2);
  return std::isnan(weight) ? 0.0 : weight;
}

std::vector<double> multistep_weights(std::span<const float> sigmas) {
  CHECK_GE(sigmas.size(), std::size_t{2});
  std::vector<double> weights(sigmas.size() - 1);
  for (std::size_t i = 1; i < weights.size(); ++i)
    if (sigmas[i + 1] != 0) weights[i] = multistep_weight(sigmas[i - 1], sigmas[i], sigmas[i + 1]);
  return weights;
}

std::vector<double> carried_weights(std::span<const float> video_sigmas, std::span<const float> audio_sigmas,
                                    double carry) {
  CHECK_EQ(video_sigmas.size(), audio_sigmas.size());
  std::vector<double> weights = multistep_weights(video_sigmas);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] *= 1.0 + (carry - 1.0) * static_cast<double>(audio_sigmas[i + 1]);
  return weights;
}

static std::vector<StepCoefficients> coefficients(const Schedule& schedule, const std::vector<double>& weights) {
  std::vector<StepCoefficients> steps;
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    steps.push_back(
        {1.0f - schedule.timesteps[i], schedule.sigmas[i + 1] / schedule.sigmas[i], static_cast<float>(weights[i])});
  }
  return steps;
}

SamplerPlan plan_sampler(const SamplerOptions& options, const SchedulePair& schedules) {
  const auto& video = schedules.video.sigmas;
  const auto& audio = schedules.audio.sigmas;
  CHECK_EQ(video.size(), audio.size());
  std::vector<double> video_weights(video.size() - 1), audio_weights(video.size() - 1);
  const bool multistep = options.kind == SamplerKind::res_multistep;
  if (multistep) {
    video_weights = multistep_weights(video);
    audio_weights =
        options.audio == AudioCorrection::own ? multistep_weights(audio) : carried_weights(video, audio, options.carry);
  }
  return {coefficients(schedules.video, video_weights), coefficients(schedules.audio, audio_weights), multistep};
}

Sampler::Sampler(SamplerPlan plan, Arena& arena, const Shape& video, const Shape& audio) : plan_(std::move(plan)) {
  CHECK_EQ(plan_.video.size(), plan_.audio.size());
  if (!plan_.multistep) return;
  video_ = {arena.take(video, DType::f32), arena.take(video, DType::f32)};
  audio_ = {arena.take(audio, DType::f32), arena.take(audio, DType::f32)};
}

void Sampler::advance(Operators& operators, Queue& queue, const StepCoefficients& c, const Tensor& x, const Tensor& v,
                      History& history) {
  if (x.elements() == 0) return;
  operators.euler_step(queue, x, v, c.one_minus_t, c.ratio, history.clean);
  if (c.weight != 0) operators.multistep_correction(queue, x, history.clean, history.previous, c.weight);
  std::swap(history.clean, history.previous);
}

void Sampler::step(Operators& operators, Queue& queue, const Tensor& video_x, const Tensor& video_v,
                   const Tensor& audio_x, const Tensor& audio_v) {
  CHECK_LT(done_, steps());
  const auto i = static_cast<std::size_t>(done_);
  advance(operators, queue, plan_.video[i], video_x, video_v, video_);
  advance(operators, queue, plan_.audio[i], audio_x, audio_v, audio_);
  ++done_;
}

void Sampler::resume(int steps_done) {
  CHECK_LE(0, steps_done);
  CHECK_LE(steps_done, steps());
  done_ = steps_done;
}

}  // namespace h3
