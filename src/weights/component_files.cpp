#include "weights/component_files.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "weights/config_object.h"
#include "weights/foreign_files.h"
#include "weights/name_ranges.h"

namespace h3 {

namespace fs = std::filesystem;

void Problems::throw_if_any(const std::string& title) const {
  if (lines_.empty()) return;
  std::string text = fmt::format("{}: {} problem{}", title, lines_.size(), lines_.size() == 1 ? "" : "s");
  for (const std::string& line : lines_) text += "\n  " + line;
  throw UserError(text);
}

// Which file holds which tensor, as stated by an index file.
struct ShardIndex {
  fs::path path;                                               // empty: a single file
  std::map<std::string, std::string> file_of;                  // by tensor
  std::map<std::string, std::vector<std::string>> tensors_of;  // by file
};

static ShardIndex read_index(const fs::path& path) {
  ShardIndex index;
  index.path = path;
  ConfigObject o = ConfigObject::read(path);
  o.ignore({"metadata"});
  const nlohmann::json map = o.raw("weight_map");
  o.finish();
  if (!map.is_object() || map.empty())
    throw UserError(path.string(), "weight_map", "", "expected an object of file names");
  for (const auto& [tensor, file] : map.items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || !name.ends_with(".safetensors"))
      throw UserError(path.string(), "weight_map." + tensor, shown(file), "expected a safetensors file beside it");
    index.file_of[tensor] = name;
    index.tensors_of[name].push_back(tensor);
  }
  return index;
}

// The index or the single file of a folder; the two layouts use different base names, and both are taken in both.
static ShardIndex find_files(const fs::path& folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) throw UserError(folder.string(), "", "", "the folder is missing");
  for (const char* base : {"diffusion_pytorch_model", "model"}) {
    const fs::path index = folder / fmt::format("{}.safetensors.index.json", base);
    if (fs::exists(index, ec)) return read_index(index);
    const std::string single = fmt::format("{}.safetensors", base);
    if (fs::exists(fs::symlink_status(folder / single, ec))) {
      ShardIndex index_of_one;
      index_of_one.tensors_of[single];
      return index_of_one;
    }
  }
  std::string shards;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".safetensors") shards = entry.path().filename().string();
  throw UserError(folder.string(), "", shards,
                  shards.empty()
                      ? "no weights: expected model.safetensors, diffusion_pytorch_model.safetensors or shards "
                        "with their index"
                      : "the index of the shards is missing, expected NAME.safetensors.index.json");
}

// The check of one component: gathers headers, compares them with the plan, and keeps what it learned for the source.
class ComponentCheck {
 public:
  ComponentCheck(const ModelConfig& config, const ComponentPlan& plan, Layout layout, const fs::path& folder,
                 Problems& problems, std::vector<std::string>& notes)
      : config_(config), plan_(plan), layout_(layout), folder_(folder), problems_(problems), notes_(notes) {
    for (const PlannedTensor& t : plan_.tensors)
      for (const StoredPart& part : stored_parts(t, layout_)) planned_.insert(part.name);
  }

  std::shared_ptr<const FileSource> run() {
    const std::size_t before = problems_.count();
    index_ = find_files(folder_);
    open_files();
    gather();
    const std::string foreign = foreign_kind(found_names());
    if (!foreign.empty()) {
      // What is missing or unexpected then says nothing more.
      problems_.add(folder_, "is " + foreign);
      return nullptr;
    }
    compare();
    find_unexpected();
    report_faults();
    if (problems_.count() != before) return nullptr;
    auto source = std::make_shared<FileSource>(std::move(files_), layout_);
    for (const auto& [name, place] : found_) source->add(name, place.file, place.entry);
    check_values(plan_, *source, folder_, problems_, notes_);
    return source;
  }

 private:
  struct Place {
    std::size_t file = 0;
    TensorEntry entry;
  };

  bool may_be_ignored(const std::string& name) const { return ignorable(config_, plan_.component, layout_, name); }

  // Shards that hold nothing but tensors that may be ignored need not be there (spec/text.md 5.1).
  bool needed(const std::string& file) const {
    const auto& tensors = index_.tensors_of.at(file);
    return tensors.empty() ||
           !std::all_of(tensors.begin(), tensors.end(), [&](const auto& t) { return may_be_ignored(t); });
  }

  void open_files() {
    for (const auto& [name, tensors] : index_.tensors_of) {
      if (!needed(name)) continue;
      try {
        files_.emplace_back(folder_ / name);
      } catch (const UserError& e) {
        problems_.add(e.what());
        // Its tensors are not reported again as missing.
        for (const std::string& t : tensors) lost_.insert(canonical_name(t));
        lost_all_ |= tensors.empty();
      }
    }
  }

  // The names under which weight norm is stored by newer library versions (spec/vae.md 15).
  static std::string canonical_name(const std::string& name) {
    for (const auto& [suffix, other] : {std::pair{".parametrizations.weight.original0", ".weight_g"},
                                        std::pair{".parametrizations.weight.original1", ".weight_v"}})
      if (name.ends_with(suffix)) return name.substr(0, name.size() - std::string(suffix).size()) + other;
    return name;
  }

  void gather() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::string file = files_[i].path().filename().string();
      for (const auto& [stored_name, entry] : files_[i].tensors()) {
        const std::string name = plan_.component == Component::audio_vae ? canonical_name(stored_name) : stored_name;
        const auto [it, added] = found_.try_emplace(name, Place{i, entry});
        if (!added) note(i, name, "also in " + files_[it->second.file].path().filename().string());
        if (index_.path.empty()) continue;
        const auto stated = index_.file_of.find(stored_name);
        if (stated == index_.file_of.end())
          note(i, name, "not in the index");
        else if (stated->second != file)
          note(i, name, "the index says " + stated->second);
      }
    }
  }

  std::vector<std::string_view> found_names() const {
    std::vector<std::string_view> names;
    for (const auto& [name, place] : found_) names.push_back(name);
    return names;
  }

  void compare() {
    std::vector<std::string> missing;
    std::map<std::pair<DType, DType>, int> converted;
    for (const PlannedTensor& t : plan_.tensors)
      for (const StoredPart& part : stored_parts(t, layout_)) {
        const auto it = found_.find(part.name);
        if (it == found_.end()) {
          const bool known = lost_all_ || lost_.contains(part.name) || t.role == Role::frequencies;
          if (!known) missing.push_back(part.name);
          continue;
        }
        const TensorEntry& entry = it->second.entry;
        const std::size_t file = it->second.file;
        if (!(entry.shape == part.shape))
          note(file, part.name, fmt::format("shape {}, expected {}", entry.shape.text(), part.shape.text()));
        if (entry.dtype == t.dtype) continue;
        if (convertible(entry.dtype, t.dtype))
          ++converted[{entry.dtype, t.dtype}];
        else
          note(file, part.name,
               fmt::format("dtype {}, expected {}", safetensors_name(entry.dtype), safetensors_name(t.dtype)));
      }
    if (!missing.empty()) problems_.add(folder_, fmt::format("missing {}", listed(missing)));
    for (const auto& [types, n] : converted)
      notes_.push_back(fmt::format("{}: {} tensors are stored as {} and used as {}", folder_.string(), n,
                                   safetensors_name(types.first), safetensors_name(types.second)));
  }

  // spec/dit.md 2.7, text.md 5.1, vae.md 1
  bool convertible(DType found, DType wanted) const {
    if (plan_.component == Component::transformer)
      return (wanted == DType::f32 && (found == DType::bf16 || found == DType::f16)) ||
             (wanted == DType::bf16 && found == DType::f32);
    return plan_.component == Component::text_encoder && (found == DType::f32 || found == DType::f16);
  }

  static std::string listed(const std::vector<std::string>& names) {
    std::string text = names.size() == 1 ? "tensor " : fmt::format("{} tensors: ", names.size());
    const std::vector<std::string> ranges = name_ranges(names);
    for (std::size_t i = 0; i < ranges.size(); ++i) text += (i ? ", " : "") + ranges[i];
    return text;
  }

  void find_unexpected() {
    for (const auto& [name, place] : found_)
      if (!planned_.contains(name) && !may_be_ignored(name)) note(place.file, name, "unexpected");
  }

  // One line for all tensors of a file that have the same fault.
  void note(std::size_t file, const std::string& tensor, const std::string& fault) {
    faults_[{file, fault}].push_back(tensor);
  }
  void report_faults() {
    for (const auto& [fault, names] : faults_)
      problems_.add(files_[fault.first].path(), fmt::format("{}: {}", listed(names), fault.second));
  }

  const ModelConfig& config_;
  const ComponentPlan& plan_;
  Layout layout_;
  const fs::path& folder_;
  Problems& problems_;
  std::vector<std::string>& notes_;
  std::set<std::string> planned_, lost_;
  bool lost_all_ = false;
  ShardIndex index_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> found_;
  std::map<std::pair<std::size_t, std::string>, std::vector<std::string>> faults_;
};

std::shared_ptr<const FileSource> open_component(const ModelConfig& config, const ComponentPlan& plan, Layout layout,
                                                 const fs::path& folder, Problems& problems,
                                                 std::vector<std::string>& notes) {
  try {
    return ComponentCheck(config, plan, layout, folder, problems, notes).run();
  } catch (const UserError& e) {
    problems.add(e.what());
    return nullptr;
  }
}

}  // namespace h3
