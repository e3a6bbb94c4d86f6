#include "cli/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "support/goldens.h"

namespace h3::test {

std::string h3render_path() {
  return H3RENDER_PROGRAM;
}

std::string mpirun_path() {
  return H3RENDER_MPIRUN;
}

static void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

Words on_ranks(int ranks, const Words& words) {
  if (ranks == 1) return words;
  Words all{mpirun_path(), "-n", std::to_string(ranks)};
  append(all, words);
  return all;
}

Result h3render(const Words& words, int ranks, const Surroundings& surroundings) {
  Words all{h3render_path()};
  append(all, words);
  return run(on_ranks(ranks, all), surroundings);
}

Json nano_scene(int evaluations) {
  return {{"prompt", "A red circle moves right on a black background. A high tone plays."},
          {"width", 256},
          {"height", 192},
          {"frames", 22},
          {"seed", 42},
          {"evaluations", evaluations}};
}

Json tiny_scene() {
  Json scene = nano_scene(1);
  scene["width"] = scene["height"] = 64;
  scene["frames"] = 5;
  return scene;
}

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

std::string write_scene(const fs::path& folder, const Json& scene, const std::string& file) {
  write_text(folder / file, scene.dump(2) + "\n");
  return folder / file;
}

Words render_words(const std::string& scene, const fs::path& output, const Words& options, const std::string& model) {
  Words words{"render", scene, "--model", model.empty() ? nano_path() : model, "--output", output, "--device", "cpu"};
  append(words, options);
  return words;
}

Render::Render(Json scene, const Words& options, int ranks, const std::string& model) {
  if (!scene.contains("name")) scene["name"] = "clip";
  name_ = scene["name"];
  const std::string scene_file = write_scene(folder_.path(), scene);
  result_ = h3render(render_words(scene_file, output(), options, model), ranks);
  expect_done(result_);
  const fs::path manifest = file(".manifest.json");
  if (fs::exists(manifest)) manifest_ = read_json(manifest);
}

Json read_json(const fs::path& file) {
  return Json::parse(read_file(file));
}

Hashes hashes_of(const Json& manifest) {
  Hashes hashes;
  if (!manifest.is_object()) return hashes;  // the render has failed already
  const Json& all = manifest.at("hashes");
  const std::array<const char*, 4> names{"video_latents", "audio_latents", "frames", "audio"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    hashes[i] = all.at(names[i]).get<std::string>();
    EXPECT_EQ(hashes[i].size(), 32u) << names[i];
  }
  return hashes;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    names.insert(it->path().lexically_relative(folder).string());
  return names;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

void expect_refused(const Result& result, const std::vector<std::string>& parts, const fs::path& output) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(count_of(result.err, "error: "), 1u) << result.err;
  for (const std::string& part : parts)
    EXPECT_NE(result.err.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << result.err;
  EXPECT_EQ(output.empty() ? std::set<std::string>{} : names_in(output), std::set<std::string>{});
}

void expect_done(const Result& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

bool full_run() {
  const char* full = std::getenv("H3RENDER_FULL");
  return full && *full;
}

Words in_mount_namespace(const std::string& script, const Words& arguments) {
  const auto words_for = [](const std::string& text) {
    return Words{"unshare", ::geteuid() == 0 ? "-m" : "-rm", "sh", "-ec", text, "sh"};
  };
  const TemporaryFolder probe;
  Words trial = words_for("mount -t tmpfs -o size=64k tmpfs \"$1\"");
  trial.push_back(probe.path());
  bool allowed = false;
  try {
    allowed = run(trial).exit_code == 0;
  } catch (const std::exception&) {  // no unshare on this machine
  }
  if (!allowed) return {};
  Words words = words_for(script);
  append(words, arguments);
  return words;
}

}  // namespace h3::test
