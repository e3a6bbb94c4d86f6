// The timesteps that the rows of a step are told (spec/dit.md 3.5). A row's modulation class never changes; a step
// gives each class its timestep. Text follows the video; conditions are held at nearly and quite clean.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transformer/modulation.h"

namespace h3 {

// Which AdaLN parameters a row takes; the values are the reference's token tags.
enum class Modality : std::uint8_t { video = 0, text = 1, audio = 2 };

Modality modality_of(ModulationClass c);

// The timesteps of the classes at a step whose streams stand at `t_video` and `t_audio`.
ClassTimesteps class_timesteps(float t_video, float t_audio);

// Those of a whole render: one entry a step, from both streams' timesteps (equally many).
std::vector<ClassTimesteps> schedule_timesteps(std::span<const float> video, std::span<const float> audio);

// Which classes occur in a sequence.
using ClassSet = std::array<bool, kModulationClasses>;

// The reference's addressing of one step: the distinct timesteps of the classes that occur, ascending, and each class's
// index in them (-1 for one that does not occur).
struct TimePlan {
  std::vector<float> timesteps;  // [M]
  std::array<std::int32_t, kModulationClasses> index{};

  // The row of a class in a modulation table of all (timestep, modality) pairs, [3 M, ...].
  std::int32_t modulation_row(ModulationClass c) const;
};

TimePlan plan_times(const ClassTimesteps& timesteps, const ClassSet& present);

}  // namespace h3
