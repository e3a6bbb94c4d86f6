// Previews: what they show is what the clip becomes, they are replaced as a whole, named by `status`, and change
// nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "cli/program.h"
#include "media/png.h"
#include "media/sheet.h"

namespace h3::test {
namespace {

Json captioned(int evaluations) {
  Json scene = nano_scene(evaluations);
  scene["name"] = "a";
  scene["prompt"] = "A red circle moves right on a black background. A high tone plays.";
  scene["width"] = 256;
  scene["height"] = 192;
  return scene;
}

Image part_of(const Image& strip, int index, int width) {
  Image part(width, strip.height);
  for (int y = 0; y < strip.height; ++y) std::copy_n(strip.pixel(index * width, y), 3 * width, part.pixel(0, y));
  return part;
}

// Correlation of all colours of two pictures of one size.
double correlation(const Image& a, const Image& b) {
  const auto n = static_cast<double>(a.rgb.size());
  double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    const double x = a.rgb[i], y = b.rgb[i];
    sa += x, sb += y, saa += x * x, sbb += y * y, sab += x * y;
  }
  return (sab - sa * sb / n) / std::sqrt((saa - sa * sa / n) * (sbb - sb * sb / n));
}

double psnr(const Image& a, const Image& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::pow(double{1} * a.rgb[i] - b.rgb[i], 2);
  return 10 * std::log10(255 * 255 / std::max(1e-9, sum / static_cast<double>(a.rgb.size())));
}

class Preview : public testing::Test {
 protected:
  Result render(const Json& scene, const Words& options, int ranks = 1) const {
    return h3render(render_words(write_scene(folder_.path(), scene), out(), options), ranks);
  }
  fs::path out() const { return folder_.path() / "out"; }
  fs::path preview() const { return out() / "a.preview.png"; }
  // Latent frames 0, 1, 2, 3, 4 and 6 of 7 stand for these frames of the clip.
  static constexpr int kFrames[] = {0, 4, 8, 12, 16, 21};

  TemporaryFolder folder_;
};

TEST_F(Preview, ShowsWhatTheClipBecomes) {
  // Stopped before the last step of 24, from a state that still holds noise.
  EXPECT_NE(render(captioned(24), {"--preview-steps", "20", "--fail", "0:decode"}, 2).exit_code, 0);
  const Image strip = read_png(preview());
  EXPECT_EQ(strip.width, 6 * 64);
  EXPECT_EQ(strip.height, 48);
  const Result status = h3render({"status", out()});
  EXPECT_NE(status.out.find("a.preview.png"), std::string::npos) << status.out;
  EXPECT_EQ(Json::parse(h3render({"status", out(), "--json"}).out)["scenes"][0]["preview"], "a.preview.png");

  expect_done(render(captioned(24), {"output.frames=true"}));
  EXPECT_FALSE(fs::exists(preview()));
  const Json manifest = read_json(out() / "a.manifest.json");
  for (int i = 0; i < 6; ++i) {
    const Image frame = read_png(out() / "a.frames" / fmt::format("{:06}.png", kFrames[i]));
    const Image small = shrunk(frame, 64, 48), shown = part_of(strip, i, 64);
    EXPECT_GT(correlation(shown, small), 0.9) << i;
    EXPECT_GT(psnr(shown, small), 18) << i;
  }
}

TEST_F(Preview, ChangesNothing) {
  Json scene = captioned(4);
  const Render plain(scene);
  for (const int ranks : {1, 3}) {
    expect_done(render(scene, {"--preview-steps", "1", "--existing", "overwrite"}, ranks));
    EXPECT_EQ(hashes_of(read_json(out() / "a.manifest.json")), hashes_of(plain.manifest()));
    EXPECT_EQ(names_in(out()), (std::set<std::string>{"a.manifest.json", "a.mp4", "a.sheet.png"}));
  }
}

TEST_F(Preview, ThatCannotBeWrittenIsAWarning) {
  fs::create_directories(preview() / "in the way");
  const Result result = render(tiny_scene(), {"name=a", "--preview-steps", "1"});
  expect_done(result);
  EXPECT_NE(result.err.find("preview: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("a.preview.png"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace h3::test
