// The program under test: how its commands are started alone and under mpirun, small scenes for it, and what a render
// leaves.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/process.h"

namespace h3::test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string h3render_path();
std::string mpirun_path();
// The words that start `words` (program and arguments) on some ranks: alone without mpirun.
Words on_ranks(int ranks, const Words& words);

// Runs "h3render WORDS" to its end.
Result h3render(const Words& words, int ranks = 1, const Surroundings& surroundings = {});

// A caption of the nano model on its own canvas, 22 frames, `evaluations` evaluations.
Json nano_scene(int evaluations);
// The smallest scene that goes through every stage: 64 x 64, 5 frames, one evaluation.
Json tiny_scene();
// Writes scenes (an object or an array) into `folder` and returns the file.
std::string write_scene(const fs::path& folder, const Json& scene, const std::string& file = "scene.json");
void write_text(const fs::path& file, const std::string& text);

// One render into an output folder of its own. The scene is called "clip" unless it has a name.
class Render {
 public:
  // A test failure with the program's messages where it does not end with exit code 0.
  explicit Render(Json scene, const Words& options = {}, int ranks = 1, const std::string& model = "");
  const Result& result() const { return result_; }
  const Json& manifest() const { return manifest_; }  // null where there is none
  fs::path file(const std::string& ending) const { return output() / (name_ + ending); }
  fs::path output() const { return folder_.path() / "out"; }
  fs::path folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::string name_;
  Result result_;
  Json manifest_;
};

// "render SCENE --model MODEL --output OUTPUT --device cpu OPTIONS..."; the nano model where none is named.
Words render_words(const std::string& scene, const fs::path& output, const Words& options = {},
                   const std::string& model = "");

Json read_json(const fs::path& file);
// The four hashes of a manifest: everything a scene and its weights decide.
using Hashes = std::array<std::string, 4>;
Hashes hashes_of(const Json& manifest);
// Names of everything in a folder and below, relative to it; empty where there is no such folder.
std::set<std::string> names_in(const fs::path& folder);

// Expects exit code 2, one message that holds all `parts`, and nothing in the output folder.
void expect_refused(const Result& result, const std::vector<std::string>& parts, const fs::path& output = "");
// Expects exit code 0; shows the messages otherwise.
void expect_done(const Result& result);
std::size_t count_of(const std::string& text, const std::string& part);

// Whether the long forms were asked for (environment variable H3RENDER_FULL).
bool full_run();

// Words that run a shell script where it may mount file systems of its own, which vanish with it; empty where this
// machine does not allow that. The script's arguments are $1, $2, ...
Words in_mount_namespace(const std::string& script, const Words& arguments);

}  // namespace h3::test
