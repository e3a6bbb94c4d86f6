// Renders joined into one MP4: all frames and the sound in order, and nothing written where the parts do not fit.
#include <gtest/gtest.h>

#include "cli/program.h"
#include "media/clip_reader.h"
#include "media/compare.h"

namespace h3::test {
namespace {

// Two renders of one size, a with its frames and WAV kept.
class Join : public testing::Test {
 protected:
  Join() {
    Json a = tiny_scene(), b = tiny_scene();
    a["name"] = "a";
    a["output"] = {{"frames", true}, {"wav", true}};
    b["name"] = "b";
    b["frames"] = 22;
    b["seed"] = 7;
    scenes_ = write_scene(folder_.path(), Json::array({a, b}), "scenes.json");
    expect_done(h3render(render_words(scenes_, out())));
  }
  fs::path out() const { return folder_.path() / "out"; }
  std::string film() const { return folder_.path() / "film.mp4"; }

  TemporaryFolder folder_;
  std::string scenes_;
};

TEST_F(Join, FramesAndSoundInOrder) {
  const Result result = h3render({"join", film(), scenes_, "--output", out(), "--crf", "4"});
  expect_done(result);
  EXPECT_NE(result.out.find("2 parts, 64x64, 27 frames"), std::string::npos) << result.out;
  const VideoFile film = read_clip(this->film()), a = read_clip(out() / "a.mp4"), b = read_clip(out() / "b.mp4");
  ASSERT_EQ(film.frames.size(), 27u);
  EXPECT_NEAR(film.info.frame_rate, 24, 1e-6);
  EXPECT_NE(film.info.tags.at("comment").find("\"joined\":[\"a\",\"b\"]"), std::string::npos);
  const auto alike = [](const Image& x, const Image& y) {
    double sum = 0;
    for (std::size_t i = 0; i < x.rgb.size(); ++i) sum += std::abs(x.rgb[i] - y.rgb[i]);
    return sum / static_cast<double>(x.rgb.size());
  };
  for (std::size_t i = 0; i < 27; ++i) EXPECT_LT(alike(film.frames[i], i < 5 ? a.frames[i] : b.frames[i - 5]), 4) << i;
  // The sound of b starts with b's first frame.
  EXPECT_EQ(film.sound.length(), 36000u);
  const auto joined = film.sound.channel(0), second = b.sound.channel(0);
  double error = 0, power = 0;
  for (std::size_t i = 4000; i < 25000; ++i) {
    error += std::pow(joined[6667 + i] - second[i], 2);
    power += std::pow(second[i], 2);
  }
  EXPECT_LT(error, 0.1 * power) << error << " of " << power;
}

TEST_F(Join, ClipsAndFoldersByName) {
  expect_done(h3render({"join", film(), out() / "b.mp4", out() / "a.frames", out() / "b.mp4"}));
  EXPECT_EQ(read_clip(film()).frames.size(), 49u);
  expect_refused(h3render({"join", film(), out() / "a.mp4", out() / "b.mp4"}), {"film.mp4", "--overwrite"});
  expect_done(h3render({"join", film(), out() / "a.mp4", out() / "b.mp4", "--overwrite"}));
  EXPECT_EQ(read_clip(film()).frames.size(), 27u);
}

TEST_F(Join, PartsThatDoNotFit) {
  Json wide = tiny_scene();
  wide["name"] = "wide";
  wide["width"] = 96;
  const std::string file = write_scene(folder_.path(), wide, "wide.json");
  expect_refused(h3render({"join", film(), scenes_, file, "--output", out()}), {"wide", "there is none of that name"});
  expect_done(h3render(render_words(file, out())));
  expect_refused(h3render({"join", film(), scenes_, file, "--output", out()}), {"wide.mp4", "96x64", "64x64"});
  expect_refused(h3render({"join", film(), out() / "a.mp4"}), {"two parts or more"});
  expect_refused(h3render({"join", folder_.path() / "film.mkv", out() / "a.mp4", out() / "b.mp4"}), {"FILE.mp4"});
  expect_refused(h3render({"join", film(), out() / "a.mp4", out() / "b.mp4", "--crf", "60"}),
                 {"--crf", "60", "0 to 51"});
  EXPECT_FALSE(fs::exists(film()));
}

}  // namespace
}  // namespace h3::test
