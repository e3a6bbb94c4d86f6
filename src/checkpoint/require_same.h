// Whether a run may go on with what an earlier one left: both say as JSON what decides the bits, and the first
// difference is named by its key, so that nobody mixes two scenes, models or numerics unnoticed.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

namespace h3 {

struct JsonDifference {
  std::string key;              // "scene.references[1].image"
  std::string expected, found;  // values as JSON, shortened; "(none)" where one side lacks the key
};

// The first difference in the order of `expected`'s keys; the order of keys is none. Keys in `ignored` ("scene.output")
// and all below them are passed over.
std::optional<JsonDifference> first_difference(const nlohmann::ordered_json& expected,
                                               const nlohmann::ordered_json& found,
                                               std::span<const std::string> ignored = {});

// Throws UserError naming `where` (the file), the key and both values when there is a difference.
void require_same(const nlohmann::ordered_json& expected, const nlohmann::ordered_json& found, const std::string& where,
                  std::span<const std::string> ignored = {});

}  // namespace h3
