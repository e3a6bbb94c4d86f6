// What a prompt says about media and time, held against what the scene gives. The references pass such prompts on
// silently and render something else.
#pragma once

#include <string>
#include <vector>

#include "scene/scene.h"

namespace h3 {

// Sounds that the references have at most: which clips have a soundtrack only their files tell.
std::size_t most_sounds(const Scene& scene);

// Throws UserError where the prompt of a scene with references names one that is not there (`<Picture 3>` of two).
// `sounds`: how many references sound.
void check_prompt_labels(const Scene& scene, std::size_t sounds);

// Warnings: labels in a scene without references, and times of the form mm:ss past the end of the clip.
std::vector<std::string> prompt_warnings(const Scene& scene, double seconds);

}  // namespace h3
