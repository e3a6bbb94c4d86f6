// Scene files: a JSON file (one scene or an array), JSON lines, or a folder of JSON files. All files of a run are
// read before anything else happens; a bad scene does not hide the next one's faults.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scene/scene.h"
#include "scene/scene_keys.h"

namespace h3 {

// A scene that cannot be used. `name` is empty where not even that could be read.
struct BadScene {
  std::string name, message;
};

struct SceneList {
  std::vector<Scene> scenes;  // in the order of the arguments, files and positions
  std::vector<BadScene> bad;
  // Throws one UserError with all messages, one a line, where any scene is bad.
  void require_all_good() const;
};

// Reads `.json` (a scene, or an array of scenes), `.jsonl` and `.ndjson` (one a line), and folders (their *.json by
// name). A scene without a name gets its file's stem, followed by -1, -2, ... in arrays and lines. Names must be
// usable as file names and differ from each other.
SceneList load_scenes(const std::vector<std::filesystem::path>& sources, const std::vector<Override>& overrides = {});

}  // namespace h3
