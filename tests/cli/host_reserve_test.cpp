// Weights leave host memory for others where they would take what the run leaves free, and the bits stay.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace h3::test {
namespace {

class HostReserve : public testing::Test {
 protected:
  HostReserve() {
    Json a = tiny_scene(), b = tiny_scene();
    a["name"] = "a";
    b["name"] = "b";
    b["prompt"] = "A green ring grows on a navy background. A low tone plays.";
    write_scene(folder_.path(), Json::array({a, b}));
  }
  // Renders both scenes, each with a text of its own, into a folder of the options' own; their hashes.
  Json hashes(Words options, int ranks, Result& result) {
    options.insert(options.end(), {"--cache", "off"});
    const fs::path out = folder_.path() / std::to_string(++runs_);
    result = h3render(render_words(folder_.path() / "scene.json", out, options), ranks);
    expect_done(result);
    return {hashes_of(read_json(out / "a.manifest.json")), hashes_of(read_json(out / "b.manifest.json"))};
  }
  static bool drops(const Result& result, const std::string& component) {
    return result.err.find("dropped " + component) != std::string::npos;
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

constexpr const char* kMoreThanThereIs = "100000";

TEST_F(HostReserve, WeightsPassOneAfterAnother) {
  Result result;
  const Json expected = hashes({"--host-reserve", "0"}, 1, result);
  EXPECT_FALSE(drops(result, "")) << result.err;
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(hashes({"--host-reserve", kMoreThanThereIs}, ranks, result), expected);
    EXPECT_TRUE(drops(result, "text encoder") && drops(result, "transformer")) << result.err;
  }
}

TEST_F(HostReserve, OrLieOnADisk) {
  Result result;
  const Json expected = hashes({"--host-reserve", "0"}, 1, result);
  const fs::path scratch = folder_.path() / "scratch";
  fs::create_directory(scratch);
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(hashes({"--host-reserve", kMoreThanThereIs, "--scratch", scratch}, ranks, result), expected);
    EXPECT_FALSE(drops(result, "")) << result.err;
    EXPECT_TRUE(fs::is_empty(scratch));
  }
}

TEST_F(HostReserve, GroupsKeepEverything) {
  Result result;
  const Json expected = hashes({}, 1, result);
  EXPECT_EQ(hashes({"--host-reserve", kMoreThanThereIs, "--ranks-per-scene", "1"}, 2, result), expected);
  EXPECT_FALSE(drops(result, "")) << result.err;
}

TEST_F(HostReserve, OtherValuesAreRefused) {
  for (const std::string value : {"-1", "much", "nan", "8GB", "1e9"}) {
    const Result result =
        h3render(render_words(folder_.path() / "scene.json", folder_.path() / "out", {"--host-reserve", value}));
    EXPECT_EQ(result.exit_code, 2) << value;
    EXPECT_NE(result.err.find("--host-reserve"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("GiB"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace h3::test
