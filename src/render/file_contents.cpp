#include "render/file_contents.h"

#include <fstream>
#include <vector>

#include "base/hash.h"

namespace h3 {

std::string hash_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Hasher hasher;
  std::vector<char> block(std::size_t{1} << 20);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    hasher.add(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  return hasher.hex();
}

template <typename F>
static void for_each_file(const Scene& scene, F&& f) {
  for (const auto* file : {&scene.first_frame, &scene.last_frame})
    if (*file && !(*file)->of) f(**file);
  for (const Reference& r : scene.references) f(r.file);
  for (const Guide& g : scene.guides)
    for (const auto* file : {&g.image, &g.video, &g.audio})
      if (*file) f(**file);
}

std::map<std::string, std::string> FileContents::of(const Scene& scene) {
  std::map<std::string, std::string> result;
  for_each_file(scene, [&](const MediaFile& file) {
    const std::string path = file.path.string();
    std::string& known = known_[path];
    if (known.empty()) known = hash_of_file(file.path);
    result[path] = known;
  });
  return result;
}

Json with_contents(Json scene, const std::map<std::string, std::string>& contents) {
  const auto replace = [&](Json& value) {
    const auto found = contents.find(value.is_string() ? value.get<std::string>() : value.dump());
    if (found != contents.end()) value = "content " + found->second;
  };
  for (const char* key : {"first_frame", "last_frame"})
    if (scene.contains(key)) replace(scene[key]);
  for (const char* key : {"references", "guides"}) {
    if (!scene.contains(key)) continue;
    for (Json& item : scene[key])
      for (const char* kind : {"image", "video", "audio"})
        if (item.contains(kind)) replace(item[kind]);
  }
  return scene;
}

}  // namespace h3
