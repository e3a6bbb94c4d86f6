// Rules that span several keys of a scene, and the step from what was asked to what is rendered: resolve() settles
// the canvas, the frame count and the shifts that a scene leaves to the model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scene/geometry.h"
#include "scene/scene.h"

namespace h3 {

// Fewer evaluations than this render, with a warning.
inline constexpr std::int64_t fewest_sensible_evaluations = 4;
inline constexpr std::int64_t default_frames = 124;

// What is wrong with a name as the stem of output files, as text that follows "expected"; nothing where it is fine.
std::optional<std::string> name_complaint(const std::string& name);

// Throws UserError where keys are missing, contradict each other or ask for an illegal size or length. Touches no file.
void check_scene(const Scene& scene);

// Throws UserError where a file that the scene names is a URL, missing, not a regular file, empty or unreadable.
void check_files(const Scene& scene);

// What a scene takes from the model where it says nothing.
struct SceneDefaults {
  CanvasRule canvas;
  double shift = 12;
  double audio_shift = 3;
};

struct Resolved {
  ClipGeometry geometry;
  std::vector<std::string> notes;     // what was decided: "seconds = 5.167: 124 frames"
  std::vector<std::string> warnings;  // what is legal but probably not meant
};

// Fills in width, height, frames and shifts (clearing aspect and seconds, which they replace) and returns the
// geometry. `keyframe` is the size of the first picture given (first_frame, else last_frame): its aspect decides the
// canvas of a scene without size and aspect (spec/dit.md 3.1). Resolving twice changes nothing.
Resolved resolve(Scene& scene, const SceneDefaults& defaults, std::optional<CanvasSize> keyframe = std::nullopt);

}  // namespace h3
