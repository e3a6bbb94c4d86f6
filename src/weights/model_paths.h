// Where the parts of a model lie. Two layouts are told apart by their folders: diffusers (transformer/ vae/ ... under
// one root) and original (FL2VA/ and Ref2VA/, each with transformer/ video_vae/ audio_vae/, the text encoder beside
// them or at the root). spec/dit.md 0.3 and 2, vae.md 1.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "weights/tensor_plan.h"

namespace h3 {

// The two sets of transformer weights, of one shape: FL2VA for text and keyframes, Ref2VA for references.
enum class Partition : std::uint8_t { fl2va, ref2va };
std::string_view name_of(Partition partition);

class ConfigObject;

struct ModelPaths {
  Layout layout = Layout::diffusers;
  std::filesystem::path root;                        // absolute, links resolved
  std::array<std::filesystem::path, 2> transformer;  // by partition; empty where the model has none
  std::filesystem::path text_encoder, video_vae, audio_vae;
  std::filesystem::path video_weights;                     // video_vae, or its subfolder source/ in the original layout
  std::filesystem::path tokenizer, processor;              // empty where there is none
  std::filesystem::path index;                             // model_index.json or modular_model_index.json; may be empty
  std::filesystem::path video_scheduler, audio_scheduler;  // diffusers only

  // Where a component's weights lie.
  const std::filesystem::path& folder(Component component, Partition partition = Partition::fl2va) const;
  // The folder of a partition that the model has; the configurations of the two are alike.
  const std::filesystem::path& any_transformer() const { return transformer[transformer[0].empty() ? 1 : 0]; }
};

// Finds the parts of a model folder (relative, absolute, a link, with a trailing slash). UserError when `folder` is no
// folder, a single file (named for what it is: adapter, ControlNet, ...), one component instead of a model, or empty.
ModelPaths find_model(const std::filesystem::path& folder);

// The numbers of a model, from its configuration files (spec/dit.md 1.1, vae.md 2 and 14). Unknown, missing or wrong
// fields, and numbers that do not fit together, are UserErrors that name file and field.
ModelConfig read_diffusers_config(const ModelPaths& paths);
ModelConfig read_original_config(const ModelPaths& paths);
// Keys of the index that the release leaves to the code: canvas rule and wanted text state.
void read_canvas(ConfigObject& index, ModelConfig& c);
TransformerConfig read_transformer_config(const std::filesystem::path& folder, Layout layout);
// Both layouts keep the text encoder's numbers in the same file.
TextConfig read_text_config(const std::filesystem::path& folder, std::int64_t state);

}  // namespace h3
