#include <algorithm>
#include <cmath>

#include "media/helpers.h"
#include "media/probe.h"
#include "media/resample.h"
#include "media/sound_reader.h"
#include "media/wav.h"
#include "media_maker.h"

namespace h3::test {

namespace fs = std::filesystem;

// A short rise and fall around one sample of every channel, as far as 16 bits hold it exactly.
static Sound click_at(int rate, int channels, double seconds, std::int64_t at) {
  Sound sound{rate, channels, {}};
  const auto length = static_cast<std::int64_t>(seconds * rate);
  for (int c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < length; ++i) {
      const double distance = static_cast<double>(i - at) / rate * 2000;
      sound.samples.push_back(static_cast<float>(0.8 * std::exp(-distance * distance)));
    }
  return sound;
}

static double loudest_second(const Sound& sound, int channel = 0) {
  const auto samples = sound.channel(channel);
  return static_cast<double>(std::max_element(samples.begin(), samples.end()) - samples.begin()) / sound.rate;
}

// Reading and probing refuse alike.
static std::string refused_sound(const fs::path& path, const ReadOptions& options = {}) {
  const std::string reading = message_of<UserError>([&] { read_sound(path, options); });
  EXPECT_EQ(message_of<UserError>([&] { probe_media(path, options); }), reading);
  expect_has(reading, path.string() + ": ");
  return reading;
}

TEST(OddSounds, EveryRateAndCodecKeepsAClickInItsPlace) {
  const TemporaryFolder folder;
  struct Kind {
    const char *name, *codec;
    double slack;  // seconds
  };
  for (const int rate : {8000, 16000, 22050, 32000, 44100, 48000, 96000})
    for (const Kind& kind : {Kind{"x.wav", "pcm_s16le", 2e-5},
                             {"x.flac", "flac", 2e-5},
                             {"x.m4a", "aac", 2e-4},
                             {"x.mka", "pcm_s16le", 2e-5}}) {
      const auto path = folder.path() / kind.name;
      const Sound click = click_at(rate, 1, 1.1, rate / 2 + 3);
      make_media(path, std::nullopt, MadeSound{.codec = kind.codec, .sound = click});
      const Sound read = read_sound(path);
      EXPECT_EQ(read.rate, 32000);
      ASSERT_EQ(read.channels, 2);
      EXPECT_NEAR(loudest_second(read, 0), 0.5 + 3.0 / rate, kind.slack) << rate << " " << kind.name;
      EXPECT_TRUE(std::equal(read.channel(0).begin(), read.channel(0).end(), read.channel(1).begin()));
      const MediaFacts facts = probe_media(path);
      EXPECT_EQ(facts.kind, MediaKind::sound);
      EXPECT_EQ(facts.channels, 1);
      EXPECT_EQ(facts.rate, rate);
      EXPECT_EQ(sound_length(facts), static_cast<std::int64_t>(read.length())) << rate << " " << kind.name;
      if (std::string(kind.codec) != "aac") {
        EXPECT_EQ(read.length(),
                  static_cast<std::size_t>(resampled_length(static_cast<std::int64_t>(click.length()), rate, 32000)));
      }
    }
}

// Matroska keeps no note of the encoder's delay, but moves the frames along with the sound.
TEST(OddSounds, AnEncodersDelayIsTheFramesToo) {
  const TemporaryFolder folder;
  for (const int rate : {16000, 44100, 48000}) {
    const auto path = folder.path() / "x.mkv";
    make_media(path, MadeVideo{.ticks = ticks_up_to(24)},
               MadeSound{.codec = "aac", .sound = click_at(rate, 2, 1.1, rate / 2)});
    EXPECT_NEAR(loudest_second(read_sound(path)), 0.5, 1e-3) << rate;
  }
}

TEST(OddSounds, StereoKeepsItsSides) {
  const TemporaryFolder folder;
  Sound sound = click_at(48000, 2, 0.5, 12000);
  std::fill(sound.samples.begin() + 24000, sound.samples.end(), 0.0f);
  make_media(folder.path() / "x.wav", std::nullopt, MadeSound{.sound = sound});
  const Sound read = read_sound(folder.path() / "x.wav");
  EXPECT_NEAR(loudest_second(read), 0.25, 1e-5);
  EXPECT_EQ(*std::max_element(read.channel(1).begin(), read.channel(1).end()), 0);
  EXPECT_EQ(probe_media(folder.path() / "x.wav").channels, 2);
}

TEST(OddSounds, FloatSamplesAtTheModelsRateAreUntouched) {
  const TemporaryFolder folder;
  const Sound sound = tones(12345, 440, 880);
  write_wav(folder.path() / "x.wav", sound);
  EXPECT_TRUE(read_sound(folder.path() / "x.wav") == sound);
  EXPECT_EQ(sound_length(probe_media(folder.path() / "x.wav")), 12345);
}

TEST(OddSounds, MoreChannelsAreRefusedOrMixed) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.wav";
  Sound sound{32000, 6, std::vector<float>(6 * 1000)};
  const float levels[6] = {0.5f, 0.25f, 0.25f, 0.5f, 0.125f, 0.0f};  // FL FR FC LFE BL BR
  for (std::size_t c = 0; c < 6; ++c)
    std::fill_n(sound.samples.begin() + static_cast<std::ptrdiff_t>(c * 1000), 1000, levels[c]);
  make_media(path, std::nullopt, MadeSound{.layout = "5.1", .sound = sound});
  expect_has(refused_sound(path), "has 6 channels; expected mono or stereo (downmix=true mixes them to stereo)");
  const Sound mixed = read_sound(path, {.downmix = true});
  const double root = std::sqrt(0.5), scale = 1 / (1 + 2 * root);
  ASSERT_EQ(mixed.channels, 2);
  EXPECT_NEAR(mixed.channel(0)[500], scale * (0.5 + root * 0.25 + root * 0.125), 1e-4);
  EXPECT_NEAR(mixed.channel(1)[500], scale * (0.25 + root * 0.25), 1e-4);
  EXPECT_EQ(probe_media(path, {.downmix = true}).channels, 6);
  make_media(path, std::nullopt, MadeSound{.layout = "3 channels", .sound = {32000, 3, std::vector<float>(3000)}});
  expect_has(refused_sound(path, {.downmix = true}), "3 channels whose places are unknown");
}

TEST(OddSounds, ASoundtrackIsCutToItsFramesBeforeItIsResampled) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.mkv";
  make_media(path, MadeVideo{.ticks = ticks_up_to(48)}, MadeSound{.sound = click_at(44100, 1, 3, 30000)});
  const MediaFacts facts = probe_media(path);
  EXPECT_EQ(facts.kind, MediaKind::clip);
  EXPECT_EQ(facts.frames, 48);
  EXPECT_EQ(facts.samples, 3 * 44100);
  for (const std::int64_t frames : {5, 22, 39, 1000}) {
    const Sound read = read_sound(path, {}, frames);
    const auto at_source = std::min<std::int64_t>(3 * 44100, static_cast<std::int64_t>(double(frames) / 24 * 44100));
    EXPECT_EQ(static_cast<std::int64_t>(read.length()), resampled_length(at_source, 44100, 32000)) << frames;
    EXPECT_EQ(static_cast<std::int64_t>(read.length()), sound_length(facts, frames)) << frames;
  }
  EXPECT_NEAR(loudest_second(read_sound(path)), 30000.0 / 44100, 2e-5);
}

TEST(OddSounds, SoundIsCountedFromTheFirstFrame) {
  const TemporaryFolder folder;
  for (const char* name : {"x.mkv", "x.nut", "x.mov"}) {
    const auto path = folder.path() / name;
    const std::string codec = std::string(name) == "x.mov" ? "mpeg4" : "ffv1";
    const Sound click = click_at(48000, 2, 2, 48000);
    // The sound begins half a second after the frames.
    make_media(path, MadeVideo{.codec = codec, .ticks = ticks_up_to(48)}, MadeSound{.sound = click, .start = 0.5});
    EXPECT_NEAR(loudest_second(read_sound(path)), 1.5, 1e-3) << name;
    EXPECT_NEAR(probe_media(path).sound_seconds(), 2.5, 2e-3) << name;
    EXPECT_EQ(sound_length(probe_media(path)), static_cast<std::int64_t>(read_sound(path).length())) << name;
    // The frames begin half a second after the sound.
    std::vector<std::int64_t> late = ticks_up_to(36);
    for (auto& t : late) t += 12;
    make_media(path, MadeVideo{.codec = codec, .ticks = late}, MadeSound{.sound = click});
    EXPECT_NEAR(loudest_second(read_sound(path)), 0.5, 1e-3) << name;
    EXPECT_NEAR(probe_media(path).sound_seconds(), 1.5, 2e-3) << name;
    EXPECT_EQ(probe_media(path).frames, 36) << name;
  }
}

TEST(OddSounds, PausesAreSilenceUpToAMinute) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.mkv";
  make_media(path, MadeVideo{.ticks = ticks_up_to(24)}, MadeSound{.sound = click_at(8000, 1, 1, 4000), .start = 30});
  EXPECT_NEAR(loudest_second(read_sound(path)), 30.5, 2e-3);
  make_media(path, MadeVideo{.ticks = ticks_up_to(24)}, MadeSound{.sound = click_at(8000, 1, 1, 4000), .start = 90});
  expect_has(refused_sound(path), "has a sound that begins 90 s after its first frame");
}

TEST(OddSounds, LongSoundsAreNotDecodedToBeProbed) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.wav";
  make_media(path, std::nullopt, MadeSound{.sound = {8000, 1, std::vector<float>(8000 * 100)}});
  const MediaFacts facts = probe_media(path);
  EXPECT_EQ(facts.samples, 800000);
  EXPECT_DOUBLE_EQ(facts.seconds(), 100);
  EXPECT_EQ(read_sound(path, {}, 24).length(), 32000u);
}

TEST(OddSounds, BrokenOnesAreRefused) {
  const TemporaryFolder folder;
  expect_has(refused_sound(folder.path() / "gone.wav"), "there is no such file");
  expect_has(refused_sound(write_into(folder, "empty.wav", "")), "is empty");
  expect_has(refused_sound(write_into(folder, "text.wav", "hello")), "cannot be read");
  make_media(folder.path() / "silent.mkv", MadeVideo{.ticks = ticks_up_to(24)});
  expect_has(message_of<UserError>([&] { read_sound(folder.path() / "silent.mkv"); }), "holds no sound");
  EXPECT_EQ(probe_media(folder.path() / "silent.mkv").sound_seconds(), 0);
  make_media(folder.path() / "none.wav", std::nullopt, MadeSound{.sound = {32000, 1, {}}});
  expect_has(message_of<UserError>([&] { read_sound(folder.path() / "none.wav"); }), "none.wav: ");
  for (const char* name : {"x.wav", "x.flac", "x.mka"}) {
    const auto path = folder.path() / name;
    make_media(path, std::nullopt,
               MadeSound{.codec = std::string(name) == "x.flac" ? "flac" : "pcm_s16le",
                         .layout = "",
                         .sound = tones(64000, 440, 310)});
    fs::resize_file(path, fs::file_size(path) / 2);
    expect_has(refused_sound(path), "is truncated");
  }
}

}  // namespace h3::test
