#include "scene/scene.h"

#include <algorithm>

namespace h3 {

std::vector<FrameOfScene> Scene::frames_taken() const {
  std::vector<FrameOfScene> taken;
  for (const auto* file : {&first_frame, &last_frame})
    if (*file && (*file)->of) taken.push_back(*(*file)->of);
  return taken;
}

std::size_t Scene::count(ReferenceKind kind) const {
  return static_cast<std::size_t>(
      std::count_if(references.begin(), references.end(), [kind](const Reference& r) { return r.kind == kind; }));
}

std::string recipe(const Scene& scene, const std::string& program) {
  Json json;
  json["program"] = program;
  json["scene"] = to_json(scene, FileNames::as_written);
  return json.dump();
}

}  // namespace h3
