#include "media/resample.h"

#include <algorithm>

#include "media/helpers.h"
#include "support/goldens.h"

namespace h3::test {

static Sound golden_sound(const Goldens& media, const std::string& name, int rate) {
  const Tensor t = media.at(name);
  return {rate, static_cast<int>(t.shape[0]), values_of(t)};
}

TEST(Resample, AsStored) {
  const Goldens media("media");
  for (const int rate : {16000, 44100, 48000}) {
    const Sound out = resampled(golden_sound(media, "wave." + std::to_string(rate), rate), 32000);
    std::vector<float> stereo = out.samples;
    if (out.channels == 1) stereo.insert(stereo.end(), out.samples.begin(), out.samples.end());
    const std::string name = "resample." + std::to_string(rate);
    ASSERT_EQ(stereo.size(), values_of(media.at(name)).size());
    const Distance d = distance(stereo, values_of(media.at(name)));
    EXPECT_LE(d.largest, media.json()["tensors"][name]["atol"].get<double>()) << name;
    EXPECT_LE(d.relative_l2, media.json()["tensors"][name]["rtol_l2"].get<double>()) << name;
  }
}

TEST(Resample, AClickStaysWhereItIs) {
  for (const int rate : {8000, 11025, 16000, 22050, 24000, 44100, 44101, 47999, 48000, 96000, 192000}) {
    Sound click{rate, 1, std::vector<float>(static_cast<std::size_t>(rate))};
    const std::size_t at = static_cast<std::size_t>(rate) / 5 + 7;
    click.samples[at] = 1;
    const Sound out = resampled(click, 32000);
    EXPECT_EQ(out.length(), 32000u) << rate;
    const auto loudest = std::max_element(out.samples.begin(), out.samples.end()) - out.samples.begin();
    EXPECT_NEAR(static_cast<double>(loudest), static_cast<double>(at) * 32000 / rate, 0.51) << rate;
  }
}

TEST(Resample, TonesKeepLevelAndPhase) {
  for (const int rate : {22050, 44100, 48000}) {
    Sound tone{rate, 1, {}};
    const auto value = [](double seconds) { return 0.5 * std::sin(2 * M_PI * 1000 * seconds); };
    for (int i = 0; i < rate / 2; ++i) tone.samples.push_back(static_cast<float>(value(static_cast<double>(i) / rate)));
    const Sound out = resampled(tone, 32000);
    for (std::size_t i = 1000; i < 15000; ++i) ASSERT_NEAR(out.samples[i], value(static_cast<double>(i) / 32000), 2e-3);
  }
}

TEST(Resample, Lengths) {
  EXPECT_EQ(resampled_length(1, 44100, 32000), 1);
  EXPECT_EQ(resampled_length(441, 44100, 32000), 320);
  EXPECT_EQ(resampled_length(442, 44100, 32000), 321);
  EXPECT_EQ(resampled_length(0, 44100, 32000), 0);
  EXPECT_EQ(resampled_length(437333, 32000, 32000), 437333);
  const Sound same = tones(1000, 440, 220);
  EXPECT_TRUE(resampled(same, 32000) == same);
  EXPECT_EQ(resampled(Sound{44100, 2, {}}, 32000).length(), 0u);
}

}  // namespace h3::test
