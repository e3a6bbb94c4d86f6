// Scenes that begin with a frame of another scene: rendered after it, from its exact pixels, and never without it.
#include <gtest/gtest.h>
#include <signal.h>

#include "cli/program.h"

namespace h3::test {
namespace {

Json named(const std::string& name, int frames, int evaluations) {
  Json scene = tiny_scene();
  scene["name"] = name;
  scene["frames"] = frames;
  scene["evaluations"] = evaluations;
  return scene;
}

Json frame_of(const std::string& scene, int frame) {
  return {{"scene", scene}, {"frame", frame}};
}

class Chain : public testing::Test {
 protected:
  // c after b after a, written children first.
  Chain() : a_(named("a", 5, 2)), b_(named("b", 22, 2)), c_(named("c", 5, 1)) {
    b_["first_frame"] = frame_of("a", -1);
    c_["first_frame"] = frame_of("b", 20);
    c_["last_frame"] = frame_of("a", 0);
  }
  std::string write(const Json& scenes) const { return write_scene(folder_.path(), scenes); }
  Words words(const Json& scenes, const Words& options = {}) const {
    return render_words(write(scenes), out(), options);
  }
  Result render(const Json& scenes, const Words& options = {}, int ranks = 1) const {
    return h3render(words(scenes, options), ranks);
  }
  fs::path out() const { return folder_.path() / "out"; }
  Json manifest(const std::string& name) const { return read_json(out() / (name + ".manifest.json")); }
  bool exists(const std::string& file) const { return fs::exists(out() / file); }

  TemporaryFolder folder_;
  Json a_, b_, c_;
};

TEST_F(Chain, ParentsFirstFromTheirExactFrames) {
  const Result result = render({c_, b_, a_}, {"--ranks-per-scene", "1"}, 2);
  expect_done(result);
  for (const char* kept : {"a.frame.000000.png", "a.frame.000004.png", "b.frame.000020.png"}) EXPECT_TRUE(exists(kept));
  EXPECT_EQ(manifest("a")["files"], Json::array({"a.frame.000000.png", "a.frame.000004.png", "a.mp4", "a.sheet.png"}));
  EXPECT_EQ(manifest("b")["scene"]["first_frame"], frame_of("a", -1));

  // The same frame given as a file makes the same clip.
  Json by_file = b_;
  fs::copy_file(out() / "a.frame.000004.png", folder_.path() / "frame.png");
  by_file["first_frame"] = (folder_.path() / "frame.png").string();
  const Render same(by_file);
  EXPECT_EQ(hashes_of(manifest("b")), hashes_of(same.manifest()));

  // One rank after another, and nothing is rendered twice.
  const Hashes before = hashes_of(manifest("c"));
  const Result again = render({a_, b_, c_});
  expect_done(again);
  EXPECT_EQ(count_of(again.err, "rendered already, skipped"), 3u) << again.err;
  expect_done(render({a_, b_, c_}, {"--existing", "overwrite"}));
  EXPECT_EQ(hashes_of(manifest("c")), before);
}

TEST_F(Chain, WhatCannotBeginIsRefused) {
  const auto refused = [&](const Json& scenes, const std::vector<std::string>& parts) {
    expect_refused(render(scenes), parts, out());
  };
  refused(Json::array({b_}), {"first_frame", "frame -1 of a", "no scene of this run"});
  a_["first_frame"] = frame_of("c", 0);
  refused({a_, b_, c_}, {"wait in a circle"});
  a_["first_frame"] = frame_of("a", 0);
  refused(Json::array({a_}), {"wait in a circle"});
  a_.erase("first_frame");
  b_["first_frame"] = frame_of("a", 5);
  refused({a_, b_}, {"frame = 5", "a frame of a, which has 5: from -5 to 4"});
  b_["first_frame"] = {{"scene", "a"}, {"number", 5}};
  refused({a_, b_}, {"first_frame", "\"scene\": NAME"});
  b_["first_frame"] = frame_of("a", -1);
  a_["evaluations"] = 0;
  refused({a_, b_}, {"evaluations", "cannot be used itself"});
}

TEST_F(Chain, AFailedParentFailsItsChildren) {
  fs::create_directories(out() / "a.mp4" / "in the way");
  const Json d = named("d", 5, 1);
  const Result result = render({a_, b_, c_, d}, {"--ranks-per-scene", "1"}, 2);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("3 of 4 scenes failed"), std::string::npos) << result.err;
  EXPECT_NE(read_json(out() / "b.failed.json")["error"].get<std::string>().find("a frame of a, which failed"),
            std::string::npos);
  EXPECT_TRUE(exists("c.failed.json") && exists("d.manifest.json"));
  fs::remove_all(out() / "a.mp4");
  expect_done(render({a_, b_, c_, d}));
  EXPECT_FALSE(exists("b.failed.json"));
}

TEST_F(Chain, AParentRenderedBefore) {
  // Without the frame it is rendered again, to the same bits.
  expect_done(render(Json::array({a_})));
  EXPECT_FALSE(exists("a.frame.000004.png"));
  const Hashes before = hashes_of(manifest("a"));
  expect_done(render({a_, b_}));
  EXPECT_TRUE(exists("a.frame.000004.png"));
  EXPECT_EQ(hashes_of(manifest("a")), before);

  // A child alone finds it; a picture that was changed is noticed.
  Json e = named("e", 5, 1);
  e["first_frame"] = frame_of("a", -1);
  expect_done(render(Json::array({e})));
  fs::copy_file(out() / "b.sheet.png", out() / "a.frame.000004.png", fs::copy_options::overwrite_existing);
  e["name"] = "f";
  const Result changed = render(Json::array({e}));
  EXPECT_EQ(changed.exit_code, 3) << changed.err;
  EXPECT_NE(changed.err.find("is not the frame that"), std::string::npos) << changed.err;
}

TEST_F(Chain, AStopAndStatus) {
  a_["frames"] = 22;
  a_["evaluations"] = 60;
  Words all{h3render_path()};
  const Words rest = words({c_, b_, a_});
  all.insert(all.end(), rest.begin(), rest.end());
  Process process(on_ranks(2, all));
  ASSERT_TRUE(process.wait_for_err("step 2/60")) << process.err();
  const Result status = h3render({"status", out(), "--json"});
  const Result words = h3render({"status", out()});
  ASSERT_EQ(::kill(process.rank(1), SIGUSR1), 0);
  EXPECT_EQ(process.wait().exit_code, 75);
  expect_done(status);
  bool found = false;
  const Json report = Json::parse(status.out);
  for (const Json& scene : report["scenes"]) {
    if (scene["name"] != "c") continue;
    found = true;
    EXPECT_EQ(scene["state"], "waiting");
    EXPECT_EQ(scene["waits_for"], Json::array({"b", "a"})) << status.out;
  }
  EXPECT_TRUE(found) << status.out;
  EXPECT_NE(words.out.find("for a frame of a"), std::string::npos) << words.out;

  const Result resumed = render({a_, b_, c_});
  expect_done(resumed);
  EXPECT_NE(resumed.err.find("a: goes on after step"), std::string::npos) << resumed.err;
  EXPECT_TRUE(exists("c.manifest.json"));
}

}  // namespace
}  // namespace h3::test
