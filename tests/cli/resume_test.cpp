// Stopped and failed scenes go on where they were, with the bits of an undisturbed run, and never mix two scenes.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace h3::test {
namespace {

class Resume : public ::testing::Test {
 protected:
  // A scene called "clip" in a file of its own.
  void write(int evaluations, const Words& more = {}) {
    scene_ = nano_scene(evaluations);
    scene_["name"] = "clip";
    if (!more.empty()) scene_["sampler"] = more[0];
    file_ = write_scene(folder_.path(), scene_);
  }
  Result render(const Words& options, int ranks) { return h3render(render_words(file_, out(), options), ranks); }
  fs::path out() const { return folder_.path() / "out"; }

  TemporaryFolder folder_;
  Json scene_;
  std::string file_;
};

TEST_F(Resume, AHaltFileStopsAllRanks) {
  write(6);
  const std::string halt = (folder_.path() / "halt").string();
  write_text(halt, "");
  const Result stopped = render({"--halt-file", halt}, 2);
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_FALSE(fs::exists(out() / "clip.mp4"));
  fs::remove(halt);
  expect_done(render({"--halt-file", halt}, 2));
}

TEST_F(Resume, OnAnyNumberOfRanksWithTheSameBits) {
  for (const char* sampler : {"euler", "res_multistep"}) {
    SCOPED_TRACE(sampler);
    write(4, {sampler});
    EXPECT_NE(render({"--fail", "1:decode"}, 2).exit_code, 0);
    EXPECT_TRUE(fs::exists(out() / "clip.checkpoint.h5"));
    const Result resumed = render({}, 3);
    expect_done(resumed);
    EXPECT_NE(resumed.err.find("goes on after step"), std::string::npos) << resumed.err;
    EXPECT_EQ(names_in(out()), (std::set<std::string>{"clip.manifest.json", "clip.mp4", "clip.sheet.png"}));
    const Render straight(scene_);
    EXPECT_EQ(hashes_of(read_json(out() / "clip.manifest.json")), hashes_of(straight.manifest()));
    fs::remove_all(out());
  }
}

TEST_F(Resume, AnotherSceneIsNotMixedIn) {
  write(3);
  EXPECT_NE(render({"--fail", "0:decode"}, 1).exit_code, 0);
  const Result other = render({"seed=1"}, 1);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("scene.seed"), std::string::npos) << other.err;
  EXPECT_EQ(render({"--resume", "refuse"}, 1).exit_code, 2);
  expect_done(render({"seed=1", "--resume", "restart"}, 1));
}

}  // namespace
}  // namespace h3::test
