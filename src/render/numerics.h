// Versions of what each stage computes. A number rises whenever a change could alter a bit of that stage's result for
// equal input; resume, caches and the manifest compare them (DESIGN "Numerics id").
#pragma once

#include <nlohmann/json.hpp>

namespace h3 {

inline nlohmann::ordered_json stage_versions() {
  return {{"tokenizer", 1},     {"media", 1},         {"vision", 1},       {"text", 1},   {"video_encoder", 1},
          {"audio_encoder", 1}, {"noise", 1},         {"schedule", 1},     {"layout", 1}, {"transformer", 1},
          {"sampler", 1},       {"video_decoder", 2}, {"audio_decoder", 1}};
}

}  // namespace h3
