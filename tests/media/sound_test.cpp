#include "media/sound.h"

#include "media/helpers.h"

namespace h3::test {

TEST(Sound, ChannelsAndTrimming) {
  const Sound sound{32000, 2, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(sound.length(), 3u);
  EXPECT_EQ(sound.channel(1)[0], 4);
  EXPECT_EQ(trimmed(sound, 2).samples, (std::vector<float>{1, 2, 4, 5}));
  EXPECT_TRUE(trimmed(sound, 9) == sound);
  EXPECT_EQ(trimmed(sound, 0).length(), 0u);
  EXPECT_EQ(Sound{}.length(), 0u);
}

TEST(Sound, DoubtsAboutBrokenSounds) {
  EXPECT_EQ(doubt_about(facts_of(tones(32000, 440, 220))), "");
  EXPECT_NEAR(facts_of(tones(32000, 440, 220)).rms, 0.3 / std::sqrt(2), 1e-3);
  EXPECT_NEAR(facts_of(tones(32000, 440, 220)).peak, 0.3, 1e-3);
  expect_has(doubt_about(facts_of(Sound{32000, 2, std::vector<float>(100, 0.0f)})), "silent");
  expect_has(doubt_about(facts_of(Sound{32000, 2, std::vector<float>(100, -1.0f)})), "off centre");
  Sound broken = tones(100, 440, 220);
  broken.samples[3] = NAN;
  broken.samples[4] = INFINITY;
  expect_has(doubt_about(facts_of(broken)), "2 samples are not finite");
  expect_has(doubt_about(facts_of(Sound{})), "silent");
}

}  // namespace h3::test
