#include "weights/foreign_files.h"

#include <algorithm>

#include "base/error.h"
#include "weights/safetensors.h"

namespace h3 {

static bool any_of(const std::vector<std::string_view>& names, bool (*holds)(std::string_view)) {
  return std::any_of(names.begin(), names.end(), holds);
}

static bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

std::string foreign_kind(const std::vector<std::string_view>& names) {
  const auto adapter = [](std::string_view n) {
    return contains(n, ".lora_") || contains(n, "lora_unet_") || contains(n, "lora_transformer_") ||
           n.ends_with(".alpha") || contains(n, ".hada_") || contains(n, ".lokr_");
  };
  const auto control = [](std::string_view n) {
    return contains(n, "control_proj_in.") || contains(n, "control_blocks.");
  };
  const auto quantized = [](std::string_view n) {
    return n.ends_with(".comfy_quant") || n.ends_with(".weight_scale") || n.ends_with(".weight_scale_2") ||
           n.ends_with(".input_scale") || n.ends_with(".scale_weight") || n.ends_with(".qweight");
  };
  // The audio VAE's own parameters end in ".alpha" too; they never come with a weight that an adapter would change.
  const bool audio =
      any_of(names, [](std::string_view n) { return contains(n, "pre_block.attn") || contains(n, ".act.beta"); });
  if (!audio && any_of(names, adapter)) return "an adapter (LoRA), not a base model";
  if (any_of(names, control)) return "a ControlNet patch, not a base model";
  if (any_of(names, quantized)) return "a quantized checkpoint, which this layout does not have";
  if (any_of(names, [](std::string_view n) { return n.ends_with("adaln_t_table"); }))
    return "a pruned checkpoint (adaln_t_table), which this layout does not have";
  return "";
}

void refuse_single_file(const std::string& given, const std::filesystem::path& file) {
  if (file.extension() != ".safetensors")
    throw UserError(given, "", "", "is a file of an unsupported format, expected a model folder");
  const SafetensorsFile opened(file);
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : opened.tensors()) names.push_back(name);
  const std::string kind = foreign_kind(names);
  throw UserError(
      given, "", "",
      kind.empty() ? "is a single file, expected a model folder" : "is " + kind + "; expected a model folder");
}

}  // namespace h3
