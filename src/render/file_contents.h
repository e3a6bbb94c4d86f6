// What the files that a scene names hold, as hashes: a scene is the same scene wherever its files lie, and another one
// when a file changes under its name. Skipping, resuming and the agreement of ranks go by it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "scene/scene.h"

namespace h3 {

// XXH3-128 of a file's bytes, as far as they can be read.
std::string hash_of_file(const std::filesystem::path& path);

// Hashes files of scenes; each once however many scenes name it.
class FileContents {
 public:
  // XXH3-128 of the bytes of each file that a scene names, by its absolute name. The files are there (check_files);
  // frames of other scenes are not yet, and join later under their JSON text (chain.h).
  std::map<std::string, std::string> of(const Scene& scene);

 private:
  std::map<std::string, std::string> known_;
};

// A scene as JSON with every file replaced by the hash of its content. `contents` by absolute name; a file that is not
// in it stays as it is.
Json with_contents(Json scene, const std::map<std::string, std::string>& contents);

}  // namespace h3
