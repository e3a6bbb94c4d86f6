// The record of a render, X.manifest.json: the scene as resolved, what computed it, by whom, in what time, and the
// hashes of what came out. Enough to render the same again and to check that it is the same.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "render/rank_place.h"
#include "render/run_plan.h"
#include "render/scene_render.h"

namespace h3 {

// What the stages of one scene report.
struct RenderFacts {
  std::vector<RankPlace> places;  // by rank
  RunPlan plan;
  std::string text_scheme;
  int text_ranks = 0;
  std::size_t coming_texts = 0;        // of other scenes, encoded at the same visit
  int vision_ranks = 0;                // 0: nothing was shown to the text encoder
  bool encoded = false;                // whether this run encoded the media, not one before it
  nlohmann::ordered_json cache;        // what was known of its encodings (SceneEncodings::report); null: not asked
  std::string video_hash, audio_hash;  // of the final latents
  VideoDecodeReport decode;
  std::vector<float> video_sigmas, audio_sigmas;
  std::string model_identity;
  std::vector<std::string> warnings;
  double exchange_seconds = 0;
  double idle_seconds = 0;  // before this scene's first operation, since the last of the scene before
};

// All but what is known when the files are written: `files`, `seconds`, and of `hashes` those of frames and samples.
nlohmann::ordered_json make_manifest(const Session& session, const SceneJob& job, const RenderFacts& facts);

// The identity of the scene that a manifest tells of (scene_identity in scene_jobs.h).
nlohmann::ordered_json manifest_identity(const nlohmann::ordered_json& manifest);

std::filesystem::path manifest_path(const std::filesystem::path& folder, const std::string& name);

}  // namespace h3
