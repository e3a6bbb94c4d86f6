#include "transformer/time_classes.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {

static constexpr float kVisualConditionTime = 0.999f;
static constexpr float kAudioConditionTime = 1.0f;

Modality modality_of(ModulationClass c) {
  switch (c) {
    case ModulationClass::text:
      return Modality::text;
    case ModulationClass::video:
    case ModulationClass::visual_condition:
      return Modality::video;
    case ModulationClass::audio:
    case ModulationClass::audio_condition:
      return Modality::audio;
  }
  return Modality::text;
}

ClassTimesteps class_timesteps(float t_video, float t_audio) {
  return {t_video, t_video, t_audio, std::max(t_video, kVisualConditionTime), kAudioConditionTime};
}

std::vector<ClassTimesteps> schedule_timesteps(std::span<const float> video, std::span<const float> audio) {
  CHECK_EQ(video.size(), audio.size());
  std::vector<ClassTimesteps> steps;
  for (std::size_t i = 0; i < video.size(); ++i) steps.push_back(class_timesteps(video[i], audio[i]));
  return steps;
}

std::int32_t TimePlan::modulation_row(ModulationClass c) const {
  const std::int32_t i = index[static_cast<std::size_t>(c)];
  CHECK_LE(0, i);
  return 3 * i + static_cast<std::int32_t>(modality_of(c));
}

TimePlan plan_times(const ClassTimesteps& timesteps, const ClassSet& present) {
  TimePlan plan;
  auto& distinct = plan.timesteps;
  for (std::size_t c = 0; c < timesteps.size(); ++c)
    if (present[c]) distinct.push_back(timesteps[c]);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (std::size_t c = 0; c < timesteps.size(); ++c) {
    const auto place = std::lower_bound(distinct.begin(), distinct.end(), timesteps[c]) - distinct.begin();
    plan.index[c] = present[c] ? static_cast<std::int32_t>(place) : -1;
  }
  return plan;
}

}  // namespace h3
