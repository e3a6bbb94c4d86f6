// Shared by the tests of scenes: short ways to make one and to see what a refusal says.
#pragma once

#include <string>

#include "scene/scene_keys.h"
#include "support/checks.h"

namespace h3::test {

inline Scene scene_of(const std::string& json) {
  return scene_from_json(parse_json(json, "a.json"), "a.json", "/scenes");
}

template <typename F>
std::string refusal(F&& run) {
  return message_of<UserError>(run);
}

inline std::string refusal_of(const std::string& json) {
  return refusal([&] { scene_of(json); });
}

// A scene with a prompt and `more` keys.
inline std::string with(const std::string& more) {
  return "{\"prompt\": \"p\", " + more + "}";
}

}  // namespace h3::test
