#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/error.h"
#include "sampling/equal_bits.h"
#include "support/goldens.h"

namespace h3 {
namespace {

constexpr int kSteps = 8;

SchedulePair nano_schedules(int evaluations = kSteps) {
  return {shifted_schedule(evaluations, 6, "test"), shifted_schedule(evaluations, 3, "test")};
}

SamplerPlan nano_plan(SamplerKind kind, AudioCorrection audio, int evaluations = kSteps) {
  return plan_sampler({kind, audio, 2.0}, nano_schedules(evaluations));
}

Tensor rows_of(std::vector<float>& values, std::int64_t width) {
  return Tensor(values.data(), {static_cast<std::int64_t>(values.size()) / width, width}, DType::f32);
}

// Both streams of one sampler on the CPU.
class Trajectory {
 public:
  Trajectory(const SamplerPlan& plan, std::vector<float> video_x, std::vector<float> audio_x)
      : video(std::move(video_x)),
        audio(std::move(audio_x)),
        machine_(make_cpu_machine()),
        queue_(machine_->make_queue()),
        arena_(*machine_, 1 << 20),
        sampler(plan, arena_, rows_of(video, 96).shape, rows_of(audio, 32).shape) {}

  void step(std::vector<float> video_v, std::vector<float> audio_v) {
    sampler.step(machine_->operators(), *queue_, rows_of(video, 96), rows_of(video_v, 96), rows_of(audio, 32),
                 rows_of(audio_v, 32));
  }

  std::vector<float> video, audio;

 private:
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Queue> queue_;
  Arena arena_;

 public:
  Sampler sampler;
};

std::vector<float> wave(std::size_t count, double phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + phase));
  return values;
}

// The model's outputs at each step of a recorded trajectory x_0 .. x_E under the given weights, in double: each step
// x' = r x + (1 - r) D + w (D_before - D) is solved for D, and v = (D - x) / (1 - t).
std::vector<std::vector<float>> velocities_of(const std::vector<std::vector<float>>& x, const Schedule& schedule,
                                              const std::vector<double>& weights) {
  std::vector<std::vector<float>> velocities;
  std::vector<double> before(x[0].size());
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double r = static_cast<double>(schedule.sigmas[i + 1]) / static_cast<double>(schedule.sigmas[i]);
    const double w = weights[i];
    auto& v = velocities.emplace_back();
    for (std::size_t k = 0; k < before.size(); ++k) {
      const auto now = static_cast<double>(x[i][k]), next = static_cast<double>(x[i + 1][k]);
      before[k] = (next - r * now - w * before[k]) / (1 - r - w);
      v.push_back(static_cast<float>((before[k] - now) / static_cast<double>(1.0f - schedule.timesteps[i])));
    }
  }
  return velocities;
}

// States of a stream in the golden `carried` run, from the initial rows on.
std::vector<std::vector<float>> carried_states(const test::Goldens& goldens, const std::string& stream,
                                               const std::string& initial) {
  std::vector<std::vector<float>> states{test::values_of(goldens.at(initial))};
  for (int k = 1; k <= kSteps; ++k) {
    states.push_back(test::values_of(goldens.at("carried.step" + std::to_string(k) + "." + stream)));
  }
  return states;
}

struct Recorded {
  Recorded()
      : goldens("res_multistep"),
        video(carried_states(goldens, "video", "t2va.in.hidden_states")),
        audio(carried_states(goldens, "audio", "t2va.in.audio_hidden_states")) {
    const SchedulePair s = nano_schedules();
    video_v = velocities_of(video, s.video, multistep_weights(s.video.sigmas));
    audio_v = velocities_of(audio, s.audio, carried_weights(s.video.sigmas, s.audio.sigmas, 2.0));
  }
  test::Goldens goldens;
  std::vector<std::vector<float>> video, audio, video_v, audio_v;
};

void expect_weights(const std::vector<double>& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(static_cast<std::int64_t>(actual.size()), expected.elements());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected.as<double>()[i], 1e-12) << name << i;
}

TEST(Sampler, WeightsEqualTheReference) {
  const test::Goldens goldens("res_multistep");
  const SchedulePair s = nano_schedules();
  expect_weights(multistep_weights(s.video.sigmas), goldens.at("weights.video"), "video ");
  expect_weights(multistep_weights(s.audio.sigmas), goldens.at("weights.audio_own"), "audio_own ");
  expect_weights(carried_weights(s.video.sigmas, s.audio.sigmas, 2), goldens.at("weights.audio_carried"),
                 "audio_carried ");
}

TEST(Sampler, WeightsEqualTheSpecificationsTable) {
  const SchedulePair s{shifted_schedule(8, 12, "test"), shifted_schedule(8, 3, "test")};
  const double video[] = {-.010182, -.014595, -.022594, -.039355, -.084013, -.277821};
  const double carried[] = {-.037674, -.051084, -.073431, -.115253, -.210033, -.527860};
  const auto w = multistep_weights(s.video.sigmas), c = carried_weights(s.video.sigmas, s.audio.sigmas, 4);
  for (std::size_t i = 0; i < 6; ++i) {
    // Six decimals of exact sigmas; ours are float32.
    EXPECT_NEAR(w[i + 1], video[i], 6e-7);
    EXPECT_NEAR(c[i + 1], carried[i], 6e-7);
  }
}

TEST(Sampler, OneAndTwoStepsHaveNoCorrection) {
  for (const int e : {1, 2}) {
    for (const double w : multistep_weights(shifted_schedule(e, 12, "test").sigmas)) EXPECT_EQ(w, 0.0);
  }
}

TEST(Sampler, EulerStepsAsTheFormula) {
  const SchedulePair s = nano_schedules();
  Trajectory run(nano_plan(SamplerKind::euler, AudioCorrection::own), wave(5 * 96, 0), wave(3 * 32, 1));
  std::vector<float> video = run.video, audio = run.audio;
  const auto advance = [](std::vector<float>& x, const std::vector<float>& v, const Schedule& schedule, std::size_t i) {
    const float r = schedule.sigmas[i + 1] / schedule.sigmas[i];
    for (std::size_t k = 0; k < x.size(); ++k) {
      const float clean = x[k] + (1.0f - schedule.timesteps[i]) * v[k];
      x[k] = r * x[k] + (1.0f - r) * clean;
    }
  };
  for (std::size_t i = 0; i < kSteps; ++i) {
    const auto video_v = wave(video.size(), static_cast<double>(i)), audio_v = wave(audio.size(), 9);
    run.step(video_v, audio_v);
    advance(video, video_v, s.video, i);
    advance(audio, audio_v, s.audio, i);
    test::expect_equal_bits(run.video, video, "video");
    test::expect_equal_bits(run.audio, audio, "audio");
  }
  EXPECT_FALSE(run.sampler.previous_video());
}

TEST(Sampler, EulerWithAConstantVelocityEndsAtItsTarget) {
  // v = clean - noise everywhere: the straight path, whose end is the clean value.
  const std::vector<float> noise = wave(4 * 96, 0), clean = wave(4 * 96, 2);
  std::vector<float> v(noise.size());
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = clean[i] - noise[i];
  for (const SamplerKind kind : {SamplerKind::euler, SamplerKind::res_multistep}) {
    Trajectory run(nano_plan(kind, AudioCorrection::carried), noise, {});
    for (int i = 0; i < kSteps; ++i) run.step(v, {});
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(run.video[i], clean[i], 2e-6);
  }
}

TEST(Sampler, MultistepFollowsTheRecordedRun) {
  const Recorded recorded;
  Trajectory run(nano_plan(SamplerKind::res_multistep, AudioCorrection::carried), recorded.video[0], recorded.audio[0]);
  for (std::size_t i = 0; i < kSteps; ++i) {
    run.step(recorded.video_v[i], recorded.audio_v[i]);
    const std::string name = "carried.step" + std::to_string(i + 1);
    recorded.goldens.expect_close(name + ".video", rows_of(run.video, 96));
    recorded.goldens.expect_close(name + ".audio", rows_of(run.audio, 32));
  }
}

TEST(Sampler, OwnCorrectionFollowsTheRecordedRun) {
  // Both recorded runs share their first step, so they share the model's outputs at the first two.
  const Recorded recorded;
  Trajectory run(nano_plan(SamplerKind::res_multistep, AudioCorrection::own), recorded.video[0], recorded.audio[0]);
  for (std::size_t i = 0; i < 2; ++i) run.step(recorded.video_v[i], recorded.audio_v[i]);
  recorded.goldens.expect_close("own.step2.video", rows_of(run.video, 96));
  recorded.goldens.expect_close("own.step2.audio", rows_of(run.audio, 32));
}

// res_multistep in its generic form x' = e^-h x + h (b1 D + b2 D_before) on one stream, in double.
std::vector<double> generic_multistep(std::vector<double> x, const std::vector<double>& sigmas,
                                      const std::vector<std::vector<double>>& clean) {
  for (std::size_t i = 0; i + 1 < sigmas.size(); ++i) {
    const double h = std::log(sigmas[i] / sigmas[i + 1]);
    const bool euler = i == 0 || sigmas[i + 1] == 0;
    const double c2 = euler ? 1 : (std::log(sigmas[i]) - std::log(sigmas[i - 1])) / h;
    const double phi1 = euler ? 0 : (1 - std::exp(-h)) / h, phi2 = euler ? 0 : (phi1 - 1) / -h;
    const double b2 = phi2 / c2, b1 = phi1 - b2, r = sigmas[i + 1] / sigmas[i];
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] = euler ? r * x[k] + (1 - r) * clean[i][k]
                   : std::exp(-h) * x[k] + h * (b1 * clean[i][k] + b2 * clean[i - 1][k]);
    }
  }
  return x;
}

TEST(Sampler, CarriedCorrectionIsTheVideosOnTheCarriedVariable) {
  // y = (sigma_v / sigma_a) x_a on the video's sigmas, with clean estimate k x0_a, is what the correction stands for.
  const SchedulePair s = nano_schedules();
  const std::size_t n = 2 * 32;
  Trajectory run(nano_plan(SamplerKind::res_multistep, AudioCorrection::carried), {}, wave(n, 4));
  std::vector<std::vector<double>> carried_clean;
  std::vector<double> y(run.audio.begin(), run.audio.end());
  for (std::size_t i = 0; i < kSteps; ++i) {
    const std::vector<float> v = wave(n, 1.3 * static_cast<double>(i));
    auto& clean = carried_clean.emplace_back();
    for (std::size_t k = 0; k < n; ++k) {
      clean.push_back(2.0 * (static_cast<double>(run.audio[k]) +
                             static_cast<double>(s.audio.sigmas[i]) * static_cast<double>(v[k])));
    }
    run.step({}, v);
  }
  const std::vector<double> sigmas(s.video.sigmas.begin(), s.video.sigmas.end());
  y = generic_multistep(y, sigmas, carried_clean);
  for (std::size_t k = 0; k < n; ++k) EXPECT_NEAR(run.audio[k], y[k] / 2.0, 5e-6);
}

TEST(Sampler, GoesOnFromAStoredHistory) {
  const SamplerPlan plan = nano_plan(SamplerKind::res_multistep, AudioCorrection::carried);
  Trajectory whole(plan, wave(7 * 96, 0), wave(5 * 32, 1));
  for (int stop = 0; stop < kSteps; ++stop) {
    Trajectory resumed(plan, whole.video, whole.audio);
    for (const auto& [from, to] : {std::pair{whole.sampler.previous_video(), resumed.sampler.previous_video()},
                                   std::pair{whole.sampler.previous_audio(), resumed.sampler.previous_audio()}}) {
      std::copy_n(from.as<float>(), from.elements(), to.as<float>());
    }
    resumed.sampler.resume(stop);
    EXPECT_EQ(resumed.sampler.steps_done(), stop);
    const auto video_v = wave(whole.video.size(), stop), audio_v = wave(whole.audio.size(), 2 * stop);
    whole.step(video_v, audio_v);
    resumed.step(video_v, audio_v);
    test::expect_equal_bits(resumed.video, whole.video, "video after " + std::to_string(stop));
    test::expect_equal_bits(resumed.audio, whole.audio, "audio after " + std::to_string(stop));
  }
  EXPECT_EQ(whole.sampler.steps_done(), kSteps);
  EXPECT_ANY_THROW(whole.step(whole.video, whole.audio));
  EXPECT_ANY_THROW(whole.sampler.resume(kSteps + 1));
}

TEST(Sampler, RowsDoNotDependOnTheSplit) {
  const SamplerPlan plan = nano_plan(SamplerKind::res_multistep, AudioCorrection::own);
  const std::size_t rows = 11, cut = 4;
  const std::vector<float> x = wave(rows * 96, 0), a = wave(rows * 32, 3);
  const auto part = [](const std::vector<float>& v, std::size_t begin, std::size_t end, std::size_t width) {
    return std::vector<float>(v.begin() + static_cast<std::ptrdiff_t>(begin * width),
                              v.begin() + static_cast<std::ptrdiff_t>(end * width));
  };
  // The second rank holds no audio.
  Trajectory whole(plan, x, a), first(plan, part(x, 0, cut, 96), a), second(plan, part(x, cut, rows, 96), {});
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> v = wave(x.size(), i), av = wave(a.size(), i);
    whole.step(v, av);
    first.step(part(v, 0, cut, 96), av);
    second.step(part(v, cut, rows, 96), {});
  }
  std::vector<float> joined = first.video;
  joined.insert(joined.end(), second.video.begin(), second.video.end());
  test::expect_equal_bits(joined, whole.video, "video");
  test::expect_equal_bits(first.audio, whole.audio, "audio");
}

TEST(Sampler, PlansItsMemoryWithoutAMachine) {
  Arena planner;
  Sampler euler(nano_plan(SamplerKind::euler, AudioCorrection::own), planner, {100, 96}, {10, 32});
  EXPECT_EQ(planner.peak(), 0u);
  Sampler multistep(nano_plan(SamplerKind::res_multistep, AudioCorrection::own), planner, {100, 96}, {10, 32});
  EXPECT_GE(planner.peak(), 2u * 4u * (100 * 96 + 10 * 32));
}

}  // namespace
}  // namespace h3
