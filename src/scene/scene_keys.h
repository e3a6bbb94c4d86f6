// The keys of a scene file: one table that parses them, writes them, documents them and names the nearest for a
// misspelt one. A new key is one row of the table.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "scene/scene.h"

namespace h3 {

// A row of the guide: `output.crf` and the like for keys of the object `output`.
struct SceneKeyHelp {
  std::string name, type, default_value, help;
};
std::vector<SceneKeyHelp> scene_key_help();

// One `key=value` from the command line.
struct Override {
  std::string key, value;
};
// Splits "KEY=VALUE"; throws UserError for text without `=` or with an unknown key.
Override parse_override(const std::string& text);

// Puts an override into a scene's JSON. The value is read as JSON, otherwise (and always for keys that hold text) as
// the text itself; `output.KEY` reaches into the object. File names are relative to the current folder. What a key
// excludes goes: a size replaces an aspect and the reverse, as `frames` and `seconds` do, unless both are overrides.
void apply_overrides(Json& scene, const std::vector<Override>& overrides);

// Reads and checks one scene. `folder` is where relative file names start. Throws UserError with `where`, the field,
// its value and what would be right: for unknown keys, wrong types, values out of range, and everything of
// check_scene(). The name may still be empty; it is the loader's to give.
Scene scene_from_json(const Json& json, const std::string& where, const std::filesystem::path& folder);

}  // namespace h3
