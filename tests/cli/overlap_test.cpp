// A batch does not wait for files: the next scene begins while those of the last one are encoded, and nothing is lost
// where that writing fails or the run is stopped meanwhile.
#include <gtest/gtest.h>
#include <signal.h>

#include "cli/program.h"

namespace h3::test {
namespace {

class Overlap : public testing::Test {
 protected:
  // The encoder takes its time for scene a.
  Overlap() {
    Json a = nano_scene(1), b = tiny_scene();
    a["name"] = "a";
    a["frames"] = 39;
    a["output"] = {{"preset", "veryslow"}, {"crf", 1}};
    b["name"] = "b";
    write_scene(folder_.path(), Json::array({a, b}));
  }
  Words words(const Words& options = {}) const { return render_words(folder_.path() / "scene.json", out(), options); }
  fs::path out() const { return folder_.path() / "out"; }
  bool exists(const std::string& file) const { return fs::exists(out() / file); }

  TemporaryFolder folder_;
};

TEST_F(Overlap, TheNextSceneBeginsWhileFilesAreWritten) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const Result result = h3render(words({"--existing", "overwrite"}), ranks);
    expect_done(result);
    EXPECT_LT(result.err.find("b: begins"), result.err.find("a: done in")) << result.err;
    EXPECT_NE(result.err.find("2 scenes; between them"), std::string::npos) << result.err;
    const Json a = read_json(out() / "a.manifest.json"), b = read_json(out() / "b.manifest.json");
    EXPECT_EQ(a["idle_seconds"], 0.0);
    EXPECT_GT(b["idle_seconds"], 0.0);
    EXPECT_GT(a["seconds"]["write"], 0.0);
    double sum = 0;
    for (const auto& [stage, seconds] : a["seconds"].items())
      if (stage != "total") sum += seconds.get<double>();
    EXPECT_NEAR(sum, a["seconds"]["total"].get<double>(), 1e-3);
    EXPECT_EQ(names_in(out()), (std::set<std::string>{"a.manifest.json", "a.mp4", "a.sheet.png", "b.manifest.json",
                                                      "b.mp4", "b.sheet.png"}));
  }
}

TEST_F(Overlap, AFailedWriteKeepsTheLatents) {
  fs::create_directories(out() / "a.mp4" / "in the way");
  const Result result = h3render(words(), 2);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(exists("a.failed.json") && exists("a.checkpoint.h5") && exists("b.manifest.json"));
  EXPECT_FALSE(exists("a.claim") || exists("a.manifest.json"));
  fs::remove_all(out() / "a.mp4");
  const Result again = h3render(words(), 1);
  expect_done(again);
  EXPECT_NE(again.err.find("a: goes on after step 1 of 1"), std::string::npos) << again.err;
  EXPECT_FALSE(exists("a.failed.json") || exists("a.checkpoint.h5"));
}

TEST_F(Overlap, AStopWaitsForTheFiles) {
  Words all{h3render_path()};
  const Words rest = words();
  all.insert(all.end(), rest.begin(), rest.end());
  Process process(on_ranks(2, all));
  ASSERT_TRUE(process.wait_for_err("b: begins")) << process.err();
  ASSERT_EQ(::kill(process.rank(1), SIGTERM), 0);
  const Result stopped = process.wait();
  EXPECT_TRUE(stopped.exit_code == 75 || stopped.exit_code == 0) << stopped.exit_code << stopped.err;
  EXPECT_TRUE(exists("a.manifest.json") && exists("a.mp4"));
  EXPECT_FALSE(exists("a.claim") || exists("a.checkpoint.h5"));
}

}  // namespace
}  // namespace h3::test
