// Renders judged by what they show: captions drawn at random from the nano model's vocabulary, and every fact of them
// looked for in the decoded MP4. H3RENDER_SEED repeats a draw.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "cli/program.h"
#include "media/clip_reader.h"
#include "support/goldens.h"
#include "support/judge.h"

namespace h3::test {

static unsigned drawn_seed() {
  const char* given = std::getenv("H3RENDER_SEED");
  return given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}() % 1000000;
}

TEST(JudgedRender, ObeysItsCaption) {
  const unsigned seed = drawn_seed();
  std::printf("captions of H3RENDER_SEED=%u\n", seed);
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  std::vector<Caption> captions;
  Json scenes = Json::array();
  for (int i = 0; i < (full_run() ? 24 : 6); ++i) {
    captions.push_back(random_caption(random));
    Json scene = nano_scene(24);
    scene["name"] = "caption" + std::to_string(i);
    scene["prompt"] = text_of(captions.back(), i % 4);
    scene["seed"] = random();
    scenes.push_back(scene);
  }
  const TemporaryFolder folder;
  const fs::path output = folder.path() / "out";
  expect_done(h3render(render_words(write_scene(folder.path(), scenes), output), 1,
                       {.environment = {}, .folder = ".", .limit = 900}));
  for (std::size_t i = 0; i < captions.size(); ++i) {
    const std::string text = scenes[i]["prompt"];
    const std::string where = "H3RENDER_SEED=" + std::to_string(seed) + ", seed " + scenes[i]["seed"].dump() + ": ";
    const VideoFile clip = read_clip(output / (scenes[i]["name"].get<std::string>() + ".mp4"));
    ASSERT_EQ(clip.frames.size(), 22u);
    expect_shows(judge(clip.frames, clip.sound), captions[i], where + text);
  }
}

}  // namespace h3::test
