#include "media/sheet.h"

#include "media/helpers.h"

namespace h3::test {

TEST(Sheet, ShrinksByAveragingAreas) {
  Image image(4, 2);
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 2; ++y) image.pixel(x, y)[1] = static_cast<std::uint8_t>(10 * x + y);
  const Image half = shrunk(image, 2, 1);
  EXPECT_EQ(half.pixel(0, 0)[1], 6);  // (0 + 1 + 10 + 11) / 4 = 5.5
  EXPECT_EQ(half.pixel(1, 0)[1], 26);
  EXPECT_TRUE(shrunk(image, 4, 2) == image);
  EXPECT_EQ(shrunk(image, 3, 2).width, 3);
}

TEST(Sheet, ShowsFirstAndLastFrame) {
  for (const std::int64_t frames : {1, 2, 5, 11, 12, 13, 22, 362}) {
    const ContactSheet sheet(64, 48, frames);
    std::int64_t shown = 0;
    for (std::int64_t i = 0; i < frames; ++i) shown += sheet.shows(i);
    EXPECT_EQ(shown, std::min<std::int64_t>(frames, 12)) << frames;
    EXPECT_TRUE(sheet.shows(0) && sheet.shows(frames - 1));
    EXPECT_FALSE(sheet.shows(frames) || sheet.shows(-1));
  }
}

static int count_of(const Image& image, const std::array<int, 3>& colour) {
  int count = 0;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* p = image.pixel(x, y);
      count += p[0] == colour[0] && p[1] == colour[1] && p[2] == colour[2];
    }
  return count;
}

TEST(Sheet, DrawsFramesTimesAndWaves) {
  ContactSheet sheet(640, 480, 22);
  Image red(640, 480), green(640, 480);
  for (int i = 0; i < 640 * 480; ++i) {
    red.rgb[static_cast<std::size_t>(3 * i)] = 255;
    green.rgb[static_cast<std::size_t>(3 * i + 1)] = 255;
  }
  for (std::int64_t i = 0; i < 22; ++i) sheet.add(i, i < 21 ? red.rgb : green.rgb);
  const Image drawn = sheet.draw(tones(29600, 440, 880));
  EXPECT_EQ(drawn.width, 4 + 4 * (320 + 4));
  EXPECT_EQ(count_of(drawn, {255, 0, 0}), 11 * 320 * 240);
  EXPECT_EQ(count_of(drawn, {0, 255, 0}), 320 * 240);
  EXPECT_GT(count_of(drawn, {96, 180, 255}), 2 * drawn.width * 10);  // the waves
  EXPECT_GT(count_of(drawn, {200, 200, 205}), 12 * 3 * 20);          // the times
}

TEST(Sheet, TakesOddSizesAndSounds) {
  ContactSheet one(32, 2016, 1);
  one.add(0, Image(32, 2016).rgb);
  one.add(5, {});
  Sound broken = tones(3, 440, 440);
  broken.samples[0] = NAN;
  broken.samples[1] = 50;
  for (const Sound& sound : {Sound{}, broken, Sound{32000, 0, {}}}) EXPECT_GT(one.draw(sound).height, 2016);
  EXPECT_THROW(one.add(0, Image(32, 32).rgb), RunError);
}

}  // namespace h3::test
