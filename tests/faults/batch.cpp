#include "faults/batch.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace h3::test {

Batch::Batch(int count, int evaluations) {
  for (int i = 0; i < count; ++i) {
    Json scene = tiny_scene();
    scene["name"] = fmt::format("s{}", i);
    scene["seed"] = i;
    scene["evaluations"] = evaluations;
    scenes_.push_back(scene);
  }
  write_scene(folder(), scenes_);
  const Result result = render(2);
  expect_done(result);
  undisturbed_seconds_ = result.seconds;
  for (const std::string& name : names()) undisturbed_[name] = hashes_of(read_json(out() / (name + ".manifest.json")));
  fs::remove_all(out());
}

std::vector<std::string> Batch::names() const {
  std::vector<std::string> names;
  for (const Json& scene : scenes_) names.push_back(scene["name"]);
  return names;
}

Words Batch::words(int ranks, const Words& options) const {
  Words all{h3render_path()};
  for (const std::string& word : render_words(folder() / "scene.json", out(), options)) all.push_back(word);
  return on_ranks(ranks, all);
}

Result Batch::render(int ranks, const Words& options) const {
  return run(words(ranks, options));
}

bool Batch::is_done() const {
  for (const std::string& name : names())
    if (!fs::exists(out() / (name + ".manifest.json"))) return false;
  return true;
}

void Batch::expect_right_so_far() const {
  for (const auto& [name, hashes] : undisturbed_) {
    const fs::path manifest = out() / (name + ".manifest.json");
    if (!fs::exists(manifest)) continue;
    EXPECT_EQ(hashes_of(read_json(manifest)), hashes) << name;
  }
}

void Batch::expect_complete() const {
  EXPECT_TRUE(is_done());
  expect_right_so_far();
  std::set<std::string> files;
  for (const std::string& name : names())
    for (const char* ending : {".manifest.json", ".mp4", ".sheet.png"}) files.insert(name + ending);
  EXPECT_EQ(names_in(out()), files);
}

}  // namespace h3::test
