#include "render/chain.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "media/png.h"
#include "render/manifest.h"

namespace h3 {

namespace fs = std::filesystem;

static bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::optional<ParentFacts> find_parent(const fs::path& folder, const std::string& scene) {
  const fs::path path = manifest_path(folder, scene);
  if (folder.empty() || !is_there(path)) return std::nullopt;
  try {
    const auto geometry = nlohmann::json::parse(read_file(path)).at("geometry");
    ParentFacts facts;
    geometry.at("width").get_to(facts.size.width);
    geometry.at("height").get_to(facts.size.height);
    geometry.at("frames").get_to(facts.frames);
    return facts;
  } catch (const std::exception&) {
    return std::nullopt;  // no manifest that could serve
  }
}

std::int64_t frame_number(const FrameOfScene& of, std::int64_t frames, const std::string& where) {
  const std::int64_t number = of.frame < 0 ? of.frame + frames : of.frame;
  if (number < 0 || number >= frames)
    throw UserError(where, "frame", std::to_string(of.frame),
                    fmt::format("a frame of {}, which has {}: from {} to {}", of.scene, frames, -frames, frames - 1));
  return number;
}

std::vector<Scene> parents_first(std::vector<Scene> scenes, std::vector<BadScene>& bad) {
  std::set<std::string> waiting, unusable;
  for (const Scene& scene : scenes) waiting.insert(scene.name);
  for (const BadScene& scene : bad) unusable.insert(scene.name);
  std::vector<Scene> ordered;
  const auto refuse = [&](const Scene& scene, const std::string& parent, const std::string& why) {
    waiting.erase(scene.name);
    unusable.insert(scene.name);
    bad.push_back({scene.name, UserError(scene.where, "scene", parent, why).what()});
  };
  // Each round takes what waits for nobody; what is left in the end waits in a circle.
  while (!scenes.empty()) {
    std::vector<Scene> left;
    for (Scene& scene : scenes) {
      const auto parents = scene.frames_taken();
      const auto of = [&](const std::set<std::string>& names) {
        return std::find_if(parents.begin(), parents.end(), [&](const auto& p) { return names.contains(p.scene); });
      };
      if (const auto parent = of(unusable); parent != parents.end()) {
        refuse(scene, parent->scene, "cannot be used itself");
      } else if (of(waiting) != parents.end()) {
        left.push_back(std::move(scene));
      } else {
        waiting.erase(scene.name);
        ordered.push_back(std::move(scene));
      }
    }
    if (left.size() == scenes.size())
      for (const Scene& scene : std::exchange(left, {}))
        refuse(scene, scene.frames_taken().front().scene, "is rendered after this scene: the scenes wait in a circle");
    scenes = std::move(left);
  }
  return ordered;
}

fs::path kept_frame_path(const fs::path& folder, const std::string& scene, std::int64_t frame) {
  return folder / fmt::format("{}.frame.{:06}.png", scene, frame);
}

fs::path frame_file(const fs::path& folder, const std::string& scene, std::int64_t frame) {
  const fs::path kept = kept_frame_path(folder, scene, frame);
  if (is_there(kept)) return kept;
  const fs::path one_of_all = folder / (scene + ".frames") / fmt::format("{:06}.png", frame);
  return is_there(one_of_all) ? one_of_all : fs::path();
}

std::string link_key(const FrameOfScene& of) {
  return Json{{"scene", of.scene}, {"frame", of.frame}}.dump();
}

LinkedFrame read_link(const fs::path& folder, const FrameOfScene& of) {
  const fs::path manifest = manifest_path(folder, of.scene);
  try {
    const auto hashes = nlohmann::json::parse(read_file(manifest)).at("hashes").at("each_frame");
    const std::int64_t number = frame_number(of, static_cast<std::int64_t>(hashes.size()), manifest.string());
    const fs::path file = frame_file(folder, of.scene, number);
    if (file.empty())
      throw SceneError(
          fmt::format("{} has not kept frame {}; render it together with this scene, or with "
                      "output.frames=true",
                      of.scene, number));
    const Image picture = read_png(file);
    const std::string content = hashes.at(static_cast<std::size_t>(number));
    if (hash_hex(picture.rgb.data(), picture.rgb.size()) != content)
      throw SceneError(fmt::format("{}: is not the frame that {} tells of", file.string(), manifest.string()));
    return {fs::absolute(file).string(), content};
  } catch (const UserError& e) {
    throw SceneError(e.what());
  } catch (const nlohmann::json::exception& e) {
    throw SceneError(fmt::format("{}: cannot be used: {}", manifest.string(), e.what()));
  }
}

SceneJob with_links(SceneJob job, const LinkedFrames& links) {
  const auto place = [&](const std::optional<MediaFile>& file, MediaItem::Role role) {
    if (!file || !file->of) return;
    const std::string key = link_key(*file->of);
    const LinkedFrame& link = links.at(key);
    job.contents[key] = link.content;
    for (MediaItem& item : job.media)
      if (item.role == role) item.picture = link.file;
  };
  place(job.scene.first_frame, MediaItem::Role::first_frame);
  place(job.scene.last_frame, MediaItem::Role::last_frame);
  return job;
}

}  // namespace h3
