#include "scene/scene_files.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "scene/scene_rules.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

// Collects scenes file by file, so that one bad file or scene does not hide the others.
class Loader {
 public:
  Loader(const std::vector<Override>& overrides, SceneList& list) : overrides_(overrides), list_(list) {}

  void add(const fs::path& source) {
    std::error_code ec;
    if (fs::is_directory(source, ec)) return guard("", [&] { add_folder(source); });
    guard(source.stem().string(), [&] { add_file(source); });
  }

 private:
  template <typename F>
  void guard(const std::string& name, F&& read) {
    try {
      read();
    } catch (const UserError& e) {
      list_.bad.push_back({name, e.what()});
    }
  }

  void add_folder(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().filename().string();
      if (name.front() != '.' && it->path().extension() == ".json") files.push_back(it->path());
    }
    if (ec) throw UserError(folder.string(), "", "", "cannot be listed: " + ec.message());
    if (files.empty()) throw UserError(folder.string(), "", "", "holds no .json files");
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) guard(file.stem().string(), [&] { add_file(file); });
  }

  void add_file(const fs::path& file) {
    const std::string content = read_file(file);
    const std::string_view text = checked_utf8(content, file.string());
    if (file.extension() == ".jsonl" || file.extension() == ".ndjson") return add_lines(file, text);
    const Json json = parse_json(text, file.string());
    if (!json.is_array()) return add_scene(json, file, file.string(), file.stem().string());
    if (json.empty()) throw UserError(file.string(), "", "", "is an empty array, expected scenes");
    for (std::size_t i = 0; i < json.size(); ++i)
      add_scene(json[i], file, fmt::format("{}, scene {}", file.string(), i + 1), numbered(file, i + 1));
  }

  void add_lines(const fs::path& file, std::string_view text) {
    std::size_t line_number = 0, scenes = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_number;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      const std::string where = fmt::format("{}, line {}", file.string(), line_number);
      const std::string name = numbered(file, ++scenes);
      guard(name, [&] { add_scene(parse_json(line, where), file, where, name); });
    }
    if (scenes == 0) throw UserError(file.string(), "", "", "holds no scenes");
  }

  static std::string numbered(const fs::path& file, std::size_t n) {
    return fmt::format("{}-{}", file.stem().string(), n);
  }

  void add_scene(Json json, const fs::path& file, const std::string& where, const std::string& default_name) {
    apply_overrides(json, overrides_);
    const bool named = json.is_object() && json.contains("name") && json["name"].is_string();
    guard(named ? json["name"].get<std::string>() : default_name, [&] {
      Scene scene = scene_from_json(json, where, file.parent_path());
      if (scene.name.empty()) give_name(scene, default_name);
      const auto [it, is_new] = wheres_.emplace(scene.name, where);
      if (!is_new)
        throw UserError(where, "name", scene.name,
                        fmt::format("is also the name of {}; outputs would collide", it->second));
      list_.scenes.push_back(std::move(scene));
    });
  }

  static void give_name(Scene& scene, const std::string& name) {
    if (const auto complaint = name_complaint(name))
      throw UserError(scene.where, "name", shown(name), "taken from the file, expected " + *complaint);
    scene.name = name;
  }

  const std::vector<Override>& overrides_;
  SceneList& list_;
  std::map<std::string, std::string> wheres_;  // of each name
};

}  // namespace

SceneList load_scenes(const std::vector<fs::path>& sources, const std::vector<Override>& overrides) {
  SceneList list;
  Loader loader(overrides, list);
  for (const fs::path& source : sources) loader.add(source);
  return list;
}

void SceneList::require_all_good() const {
  std::string message;
  for (const BadScene& scene : bad) message += (message.empty() ? "" : "\n") + scene.message;
  if (!bad.empty()) throw UserError(message);
}

}  // namespace h3
