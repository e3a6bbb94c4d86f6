#include "support/judge.h"

#include "media/helpers.h"
#include "media/png.h"
#include "support/goldens.h"

namespace h3::test {

// Frames that are stacked from top to bottom in one PNG of the goldens.
static std::vector<Image> stacked(const std::string& name, int height) {
  const Image all = read_png(source_path("tests/goldens/frames/" + name + ".png"));
  std::vector<Image> frames;
  for (int y = 0; y + height <= all.height; y += height) {
    const std::size_t bytes = 3 * static_cast<std::size_t>(all.width) * static_cast<std::size_t>(height);
    frames.emplace_back(all.width, height, std::span(all.pixel(0, y), bytes));
  }
  return frames;
}

static Sound golden_sound(const Goldens& goldens, const std::string& name) {
  return {32000, 2, values_of(goldens.at(name))};
}

TEST(Judge, SeesWhatTheReferenceRendersShow) {
  const Goldens goldens("renders");
  const Caption red{"red", "circle", "moves right", "black", "high"};
  for (const std::string name : {"t2va_22", "t2va_39", "fl2va_22"})
    expect_shows(judge(stacked("renders." + name, 192), golden_sound(goldens, name + ".pcm")), red, name);
  expect_shows(judge(stacked("renders.ref2va_22", 192), golden_sound(goldens, "ref2va_22.pcm")),
               {"orange", "ring", "moves right", "black", "high"}, "ref2va_22");
  expect_shows(judge(stacked("renders.ref2va_picture_22", 192), golden_sound(goldens, "ref2va_picture_22.pcm")),
               {"green", "ring", "moves right", "black", "high"}, "ref2va_picture_22");
}

TEST(Judge, SeesWhatTheDrawnClipsShow) {
  const Sound tone = tones(29600, 440, 440);
  expect_shows(judge(stacked("input.clip", 192), tone), {"green", "ring", "bounces", "brown", "middle"}, "clip");
  const auto clip = stacked("input.clip", 192);
  expect_shows(judge(std::span(clip).first(22), tone), {"green", "ring", "bounces", "brown", "middle"}, "clip, 22");
  const auto silent = stacked("input.silent", 192);
  const Verdict up = judge(silent, tone);
  EXPECT_EQ(up.colour, "blue");
  EXPECT_EQ(up.ground, "gray");
  EXPECT_EQ(up.motion, "moves up");
  const Verdict left = judge(stacked("input.encode_clip", 192), tone);
  EXPECT_EQ(left.colour, "white");
  EXPECT_EQ(left.ground, "navy");
  EXPECT_EQ(left.shape, "square");
  EXPECT_EQ(left.motion, "moves left");
}

// A clip drawn as the captions say, on a ground that gets darker downwards.
struct Drawn {
  std::array<int, 3> colour, ground;
  Caption caption;
};

static bool inside(const std::string& shape, double dx, double dy, double r) {
  if (shape == "square") return std::max(std::abs(dx), std::abs(dy)) <= r;
  if (shape == "triangle") return dy <= r && dy >= -r && std::abs(dx) <= (dy + r) / 2;
  const double d = std::hypot(dx, dy);
  return d <= r && (shape == "circle" || d >= 0.62 * r);
}

static Image drawn_frame(const Drawn& d, double t, int noise) {
  double x = 128, y = 96, r = 36;
  if (d.caption.motion == "moves right") x = 60 + 130 * t;
  if (d.caption.motion == "moves left") x = 190 - 130 * t;
  if (d.caption.motion == "moves up") y = 130 - 75 * t;
  if (d.caption.motion == "moves down") y = 60 + 75 * t;
  if (d.caption.motion == "grows") r = 24 + 30 * t;
  if (d.caption.motion == "shrinks") r = 54 - 30 * t;
  if (d.caption.motion == "bounces") y = 140 - 90 * std::abs(std::sin(3.5 * t));
  Image image(256, 192);
  unsigned random = static_cast<unsigned>(1000 * t) + 17;
  for (int v = 0; v < 192; ++v)
    for (int u = 0; u < 256; ++u)
      for (std::size_t c = 0; c < 3; ++c) {
        const bool in = inside(d.caption.shape, u - x, v - y, r);
        const double level = in ? d.colour[c] : d.ground[c] * (1.2 - 0.4 * v / 191);
        random = random * 1664525u + 1013904223u;
        const double shaken = level + static_cast<int>(random >> 16) % (2 * noise + 1) - noise;
        image.pixel(u, v)[c] = static_cast<std::uint8_t>(std::clamp(shaken, 0.0, 255.0));
      }
  return image;
}

TEST(Judge, SeesEveryWordOfTheVocabulary) {
  const std::pair<const char*, std::array<int, 3>> colours[] = {
      {"red", {230, 26, 26}},     {"green", {26, 191, 51}}, {"blue", {38, 76, 242}},     {"yellow", {242, 229, 26}},
      {"white", {242, 242, 242}}, {"cyan", {26, 217, 229}}, {"magenta", {229, 38, 217}}, {"orange", {243, 119, 11}}};
  const std::pair<const char*, std::array<int, 3>> grounds[] = {
      {"black", {4, 4, 4}}, {"gray", {95, 95, 95}}, {"navy", {6, 10, 52}}, {"brown", {63, 38, 17}}};
  const char* const shapes[] = {"circle", "square", "triangle", "ring"};
  const char* const motions[] = {"moves right", "moves left", "moves up",    "moves down",
                                 "grows",       "shrinks",    "stays still", "bounces"};
  const std::pair<const char*, double> tone_list[] = {{"low", 220}, {"middle", 440}, {"high", 880}};
  for (std::size_t i = 0; i < 16; ++i) {
    const auto& [colour, levels] = colours[i % 8];
    const auto& [ground, ground_levels] = grounds[(i / 8 + i) % 4];
    const auto& [tone, hz] = tone_list[i % 3];
    const Drawn d{levels, ground_levels, {colour, shapes[(i / 3) % 4], motions[(i * 3 + i / 8) % 8], ground, tone}};
    std::vector<Image> frames;
    for (int f = 0; f < 22; ++f) frames.push_back(drawn_frame(d, f / 21.0, 6));
    expect_shows(judge(frames, tones(9000, hz, hz)), d.caption, text_of(d.caption, 0));
  }
}

TEST(Judge, Sounds) {
  const auto tone_of = [](double left, double right) { return judge({}, tones(16000, left, right)); };
  EXPECT_EQ(tone_of(220, 880).left_tone, "low");
  EXPECT_EQ(tone_of(220, 880).right_tone, "high");
  EXPECT_EQ(tone_of(600, 440).left_tone, "");
  Sound panned = tones(16000, 440, 440);
  for (std::size_t i = 0; i < 16000; ++i) panned.samples[i] = 0;
  EXPECT_EQ(judge({}, panned).left_tone, "silent");
  EXPECT_EQ(judge({}, panned).tone, "middle");
}

TEST(Judge, WritesTheFourForms) {
  const Caption c{"red", "circle", "moves right", "black", "high"};
  EXPECT_EQ(text_of(c, 0), "A red circle moves right on a black background. A high tone plays.");
  EXPECT_EQ(text_of(c, 1), "a red circle moves right over a black background with a high tone");
  EXPECT_EQ(text_of(c, 2), "Red circle moves right, black background, high tone.");
  EXPECT_EQ(text_of(c, 3),
            "The camera is static. A red circle moves right in front of a black wall while a high tone sounds.");
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(text_of(random_caption(random), i % 4).empty());
}

}  // namespace h3::test
