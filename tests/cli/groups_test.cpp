// A world cut into groups of ranks (--ranks-per-scene): they share one queue, and whatever concerns the run reaches all
// of them. The scenes' bits do not depend on who renders them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "cli/program.h"

namespace h3::test {
namespace {

class Groups : public testing::Test {
 protected:
  // Scenes a, b, ... of different lengths.
  void write(const std::vector<std::pair<int, int>>& frames_and_evaluations) {
    scenes_ = Json::array();
    for (const auto& [frames, evaluations] : frames_and_evaluations) {
      Json scene = tiny_scene();
      scene["name"] = std::string(1, static_cast<char>('a' + scenes_.size()));
      scene["frames"] = frames;
      scene["evaluations"] = evaluations;
      scene["seed"] = scenes_.size();
      scenes_.push_back(scene);
    }
    write_scene(folder_.path(), scenes_);
  }
  Words words(const fs::path& output, const Words& options) const {
    return render_words(folder_.path() / "scene.json", output, options);
  }
  Result render(const fs::path& output, const Words& options, int ranks) const {
    return h3render(words(output, options), ranks);
  }
  fs::path out(const std::string& name = "out") const { return folder_.path() / name; }
  void expect_equal_renders(const fs::path& a, const fs::path& b) const {
    for (const Json& scene : scenes_) {
      const std::string manifest = scene["name"].get<std::string>() + ".manifest.json";
      ASSERT_TRUE(fs::exists(a / manifest) && fs::exists(b / manifest)) << manifest;
      EXPECT_EQ(hashes_of(read_json(a / manifest)), hashes_of(read_json(b / manifest))) << manifest;
    }
  }

  // Until each scene has a checkpoint: a group that has not begun a step has nothing to keep at a stop.
  void wait_for_checkpoints(Process& process, const Words& names) const {
    for (const std::string& name : names) {
      const fs::path checkpoint = out() / (name + ".checkpoint.h5");
      while (!fs::exists(checkpoint) && process.running()) ::usleep(2000);
      ASSERT_TRUE(fs::exists(checkpoint)) << process.err();
    }
  }

  TemporaryFolder folder_;
  Json scenes_;
};

TEST_F(Groups, AnySizeGivesTheSameBits) {
  write({{5, 1}, {22, 2}, {5, 3}, {39, 2}});
  expect_done(render(out("alone"), {}, 1));
  for (const char* size : {"1", "2", "4"}) {
    SCOPED_TRACE(size);
    const Result result = render(out(size), {"--ranks-per-scene", size}, 4);
    expect_done(result);
    expect_equal_renders(out("alone"), out(size));
    EXPECT_EQ(names_in(out(size)).size(), 3 * scenes_.size());
    EXPECT_EQ(count_of(result.err, ": done in "), scenes_.size()) << "every scene is rendered once\n" << result.err;
  }
  // One copy of the weights, read once, and the log names the groups.
  const Result again = render(out("2"), {"--ranks-per-scene", "2", "--existing", "overwrite"}, 4);
  expect_done(again);
  EXPECT_EQ(count_of(again.err, "info: group 1 of 2: transformer: "), 1u) << again.err;
  EXPECT_NE(again.err.find("info: group 2 of 2: "), std::string::npos) << again.err;
  EXPECT_EQ(count_of(again.err, ": done in "), scenes_.size()) << again.err;
}

TEST_F(Groups, LongestSceneFirst) {
  write({{5, 1}, {5, 2}, {22, 4}});
  const Result result = render(out(), {"--ranks-per-scene", "1", "--log-level", "info"}, 2);
  expect_done(result);
  EXPECT_LT(result.err.find("c: begins"), result.err.find("a: begins")) << result.err;
}

TEST_F(Groups, SharesArePerGroup) {
  write({{5, 2}, {22, 1}});
  expect_done(render(out("alone"), {}, 1));
  expect_done(render(out(), {"--ranks-per-scene", "2", "--shares", "3,1"}, 4));
  expect_equal_renders(out("alone"), out());
  const Json ranks = read_json(out() / "b.manifest.json")["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_GT(ranks[0]["rows"].get<int>(), 2 * ranks[1]["rows"].get<int>());
  expect_refused(render(out("none"), {"--ranks-per-scene", "2", "--shares", "1,1,1,1"}, 4), {"--shares"}, out("none"));
}

TEST_F(Groups, UnevenGroupsAreRefused) {
  write({{5, 1}});
  for (const char* size : {"2", "4"})
    expect_refused(render(out(), {"--ranks-per-scene", size}, 3), {"--ranks-per-scene", size, "divides the 3 ranks"},
                   out());
}

TEST_F(Groups, AFailedSceneLeavesTheOthers) {
  write({{5, 1}, {22, 1}, {5, 2}, {5, 3}});
  fs::create_directories(out() / "b.mp4" / "in the way");
  const Result result = render(out(), {"--ranks-per-scene", "1"}, 3);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("1 of 4 scenes failed"), std::string::npos) << result.err;
  for (const char* name : {"a", "c", "d"}) EXPECT_TRUE(fs::exists(out() / (std::string(name) + ".manifest.json")));
  EXPECT_TRUE(fs::exists(out() / "b.failed.json"));
  EXPECT_FALSE(fs::exists(out() / "b.claim"));
  EXPECT_EQ(count_of(result.err, "b: begins"), 1u) << "no other group tries it again\n" << result.err;
}

TEST_F(Groups, FailuresOfAllGroupsCount) {
  write(std::vector<std::pair<int, int>>(9, {5, 1}));
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i"})
    fs::create_directories(out() / (std::string(name) + ".mp4/x"));
  const Result result = render(out(), {"--ranks-per-scene", "1", "--stop-after-failures", "2"}, 2);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  std::size_t failed = 0;
  for (const std::string& name : names_in(out())) failed += name.ends_with(".failed.json");
  EXPECT_GE(failed, 2u);
  EXPECT_LE(failed, 6u) << "each group ends after the scene it is at and the one it writes\n" << result.err;
}

TEST_F(Groups, ARunErrorEndsTheWorld) {
  write({{39, 40}, {39, 40}});
  const Result result = render(out(), {"--ranks-per-scene", "1", "--fail", "1:step"}, 2);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(count_of(result.err, "--fail asked for it"), 1u) << result.err;
  EXPECT_LT(result.seconds, 30);
}

TEST_F(Groups, AStopOfOneRankStopsAllGroups) {
  write({{22, 60}, {22, 60}, {22, 60}});
  for (const int victim : {3, 0}) {
    SCOPED_TRACE(victim);
    fs::remove_all(out());
    Words all{h3render_path()};
    const Words rest = words(out(), {"--ranks-per-scene", "2"});
    all.insert(all.end(), rest.begin(), rest.end());
    Process process(on_ranks(4, all));
    wait_for_checkpoints(process, {"a", "b"});
    ASSERT_EQ(::kill(process.rank(victim), SIGUSR1), 0);
    const Result stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
    EXPECT_EQ(count_of(stopped.err, "stopped: "), 2u) << stopped.err;
    EXPECT_TRUE(fs::exists(out() / "a.checkpoint.h5") && fs::exists(out() / "b.checkpoint.h5"));
    for (const std::string& name : names_in(out())) EXPECT_FALSE(name.ends_with(".claim")) << name;
  }
}

// A group without work hears a signal for the others, and a stopped batch goes on in groups of another size.
TEST_F(Groups, AnIdleGroupPassesAStopOn) {
  write({{22, 60}, {5, 1}});
  Words all{h3render_path()};
  const Words rest = words(out(), {"--ranks-per-scene", "1"});
  all.insert(all.end(), rest.begin(), rest.end());
  Process process(on_ranks(2, all));
  ASSERT_TRUE(process.wait_for_err("b: done in")) << process.err();
  const Json manifest = read_json(out() / "b.manifest.json");
  wait_for_checkpoints(process, {"a"});
  ASSERT_EQ(::kill(process.rank(manifest["group"]["number"].get<int>() - 1), SIGUSR1), 0);
  const Result stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(fs::exists(out() / "a.checkpoint.h5"));

  const Result resumed = render(out(), {"--ranks-per-scene", "2"}, 2);
  expect_done(resumed);
  EXPECT_NE(resumed.err.find("goes on after step"), std::string::npos) << resumed.err;
  expect_done(render(out("alone"), {}, 1));
  expect_equal_renders(out("alone"), out());
}

}  // namespace
}  // namespace h3::test
