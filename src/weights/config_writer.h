// The configuration files of a model in the diffusers layout, from its numbers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weights/model_config.h"

namespace h3 {

// Each file's path below the model folder and its content. Reading them back gives the same numbers.
std::vector<std::pair<std::string, nlohmann::ordered_json>> config_files(const ModelConfig& config);

}  // namespace h3
