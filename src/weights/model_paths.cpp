#include "weights/model_paths.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "weights/config_object.h"
#include "weights/foreign_files.h"

namespace h3 {

namespace fs = std::filesystem;

std::string_view name_of(Partition partition) {
  return partition == Partition::fl2va ? "FL2VA" : "Ref2VA";
}

const fs::path& ModelPaths::folder(Component component, Partition partition) const {
  switch (component) {
    case Component::transformer:
      return transformer[static_cast<std::size_t>(partition)];
    case Component::text_encoder:
      return text_encoder;
    case Component::video_vae:
      return video_weights;
    case Component::audio_vae:
      return audio_vae;
  }
  throw RunError("unknown component");
}

static bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

static bool is_file(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

static fs::path first_folder(std::initializer_list<fs::path> candidates) {
  for (const fs::path& p : candidates)
    if (is_folder(p)) return p;
  return {};
}

static fs::path first_file(std::initializer_list<fs::path> candidates) {
  for (const fs::path& p : candidates)
    if (is_file(p)) return p;
  return {};
}

static std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

// The partition that the nearest telling folder name states; FL2VA where none does.
static Partition partition_by_name(const fs::path& path) {
  for (fs::path p = path; p.has_relative_path(); p = p.parent_path()) {
    const std::string name = lower(p.filename().string());
    if (name.find("ref2v") != std::string::npos || name == "transformer_ref") return Partition::ref2va;
    if (name.find("fl2v") != std::string::npos) return Partition::fl2va;
  }
  return Partition::fl2va;
}

// The subfolder of the root that a modular index states for a component.
static std::string stated_subfolder(const fs::path& index, const char* component) {
  if (index.empty()) return component;
  const auto json = parse_json_strictly(read_file(index), index.string());
  const auto entry = json.is_object() ? json.find(component) : json.end();
  if (!json.is_object() || entry == json.end() || !entry->is_array() || entry->size() < 3 || !(*entry)[2].is_object())
    return component;
  const auto& stated = (*entry)[2].value("subfolder", nlohmann::json(component));
  const std::string name = stated.is_string() ? stated.get<std::string>() : "";
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw UserError(index.string(), fmt::format("{}.subfolder", component), shown(stated),
                    "expected a folder of the model");
  return name;
}

static ModelPaths diffusers_paths(const fs::path& root) {
  ModelPaths p;
  p.layout = Layout::diffusers;
  p.root = root;
  p.index = first_file({root / "modular_model_index.json", root / "model_index.json"});
  p.transformer = {first_folder({root / stated_subfolder(p.index, "transformer")}),
                   first_folder({root / stated_subfolder(p.index, "transformer_ref")})};
  if (p.any_transformer().empty()) p.transformer[0] = root / "transformer";
  p.text_encoder = root / "text_encoder";
  p.video_vae = p.video_weights = root / "vae";
  p.audio_vae = root / "audio_vae";
  p.tokenizer = first_folder({root / "tokenizer", root / "processor", root / "text_encoder"});
  p.processor = first_folder({root / "processor"});
  p.video_scheduler = root / "scheduler" / "scheduler_config.json";
  p.audio_scheduler = root / "audio_scheduler" / "scheduler_config.json";
  return p;
}

// `bundle` is a folder with transformer/, video_vae/ and audio_vae/.
static Partition bundle_partition(const fs::path& bundle) {
  const fs::path index = bundle / "model_index.json";
  if (is_file(index)) {
    const auto json = parse_json_strictly(read_file(index), index.string());
    const auto info = json.is_object() ? json.find("_minimax_h3") : json.end();
    if (json.is_object() && info != json.end() && info->is_object() && info->contains("partition")) {
      const auto& stated = (*info)["partition"];
      if (stated == "fl2va") return Partition::fl2va;
      if (stated == "ref2va") return Partition::ref2va;
      throw UserError(index.string(), "_minimax_h3.partition", shown(stated), "expected \"fl2va\" or \"ref2va\"");
    }
  }
  return partition_by_name(bundle);
}

static bool is_bundle(const fs::path& folder) {
  return is_folder(folder / "video_vae") && is_folder(folder / "audio_vae");
}

static ModelPaths original_paths(const fs::path& root) {
  ModelPaths p;
  p.layout = Layout::original;
  p.root = root;
  fs::path bundle;
  std::vector<fs::path> bundles;
  if (is_bundle(root))
    bundles = {root};
  else
    bundles = {root / "FL2VA", root / "Ref2VA"};
  for (const fs::path& b : bundles) {
    if (!is_bundle(b)) continue;
    if (bundle.empty()) bundle = b;
    p.transformer[static_cast<std::size_t>(bundle_partition(b))] = first_folder({b / "transformer"});
  }
  if (p.any_transformer().empty()) p.transformer[0] = bundle / "transformer";
  const fs::path beside = is_bundle(root) ? root.parent_path() : root;
  p.text_encoder = first_folder({bundle / "text_encoder", beside / "text_encoder"});
  if (p.text_encoder.empty()) p.text_encoder = bundle / "text_encoder";
  p.video_vae = bundle / "video_vae";
  p.video_weights = p.video_vae / "source";
  p.audio_vae = bundle / "audio_vae";
  p.tokenizer = first_folder({bundle / "tokenizer", beside / "tokenizer", bundle / "processor", p.text_encoder});
  p.processor = first_folder({bundle / "processor", beside / "processor"});
  p.index = first_file({bundle / "model_index.json"});
  return p;
}

[[noreturn]] static void refuse_folder(const std::string& given, const fs::path& root) {
  const std::string name = root.filename().string();
  if (is_file(root / "config.json"))
    throw UserError(
        given, "", "",
        fmt::format("holds one component, expected the model folder, perhaps {}", root.parent_path().string()));
  for (const auto& entry : fs::directory_iterator(root))
    if (is_folder(entry.path() / "vae") || is_bundle(entry.path() / "FL2VA"))
      throw UserError(given, "", "", fmt::format("is not a model folder, perhaps {} is meant", entry.path().string()));
  if (is_folder(root / "snapshots"))
    throw UserError(given, "", "", "is a hub cache, expected one of the folders under its snapshots/");
  throw UserError(
      given, "", "",
      "is not a model folder: expected transformer/, vae/, audio_vae/ and text_encoder/ (diffusers layout) or "
      "FL2VA/ with transformer/, video_vae/ and audio_vae/ (original layout)");
}

ModelPaths find_model(const fs::path& folder) {
  const std::string given = folder.string();
  std::error_code ec;
  const fs::path root = fs::canonical(folder, ec);
  if (ec) throw UserError("model", "", given, fmt::format("cannot be opened: {}", ec.message()));
  if (!fs::is_directory(root, ec)) refuse_single_file(given, root);
  if (is_folder(root / "vae")) return diffusers_paths(root);
  if (is_bundle(root) || is_bundle(root / "FL2VA") || is_bundle(root / "Ref2VA")) return original_paths(root);
  if (is_folder(root / "transformer") || is_folder(root / "text_encoder")) return diffusers_paths(root);
  refuse_folder(given, root);
}

}  // namespace h3
