// From scene files to jobs that can be rendered: everything about a scene that can be known without weights is checked
// and settled here, for `check`, `plan` and the start of `render` alike.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "render/scene_render.h"
#include "scene/scene_files.h"
#include "text/presentation.h"
#include "weights/model_folder.h"

namespace h3 {

struct SceneJobs {
  std::vector<SceneJob> good;
  std::vector<BadScene> bad;
  // Throws one UserError with all messages where any scene is bad.
  void require_all_good() const;
  // The transformers that the good scenes need.
  std::vector<Partition> partitions() const;
};

// The tokenizer of a model. Throws UserError for synthetic weights without a folder, which have none.
Tokenizer load_tokenizer(const ModelFolder& model);

// `tokenizer` null: prompts are not looked at. `output`: where renders that scenes take frames from may lie; "": only
// scenes of the list serve. The good ones come with parents before children (chain.h).
SceneJobs prepare_scenes(const std::vector<std::string>& sources, const std::vector<std::string>& overrides,
                         const ModelFolder& model, const Tokenizer* tokenizer,
                         const std::filesystem::path& output = {});

// The scene's media and prompt as the text encoder sees them. Throws UserError naming the scene (text/presentation.h).
Presentation present_scene(const SceneJob& job, const ModelConfig& model, const Tokenizer& tokenizer);

// What makes a scene this scene and no other: its JSON with every file replaced by the hash of its content.
nlohmann::ordered_json scene_identity(const SceneJob& job);

// Makes the folder where it is missing and tries to write into it. Throws UserError naming --output.
void check_output_folder(const std::filesystem::path& folder);

// What stands in the output folder under a scene's name already.
enum class Existing : std::uint8_t { nothing, same, other };
// What renders a scene, as a manifest states it.
struct RenderedBy {
  std::string model_identity;  // "": not known, and then not compared
  std::string precision, vae_profile;
};
// Compares scene, model and numerics with the manifest found there; `difference` receives a key that differs.
Existing find_existing(const std::filesystem::path& folder, const SceneJob& job, const RenderedBy& by,
                       std::string& difference);

}  // namespace h3
