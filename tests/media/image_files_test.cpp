#include <cstdlib>
#include <random>

#include "media/helpers.h"
#include "media/png.h"
#include "media/wav.h"
#include "support/goldens.h"

namespace h3::test {

static Image noise(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  Image image(width, height);
  for (auto& level : image.rgb) level = static_cast<std::uint8_t>(random());
  return image;
}

TEST(Png, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  for (const auto& [w, h] : {std::pair{1, 1}, {3, 5}, {17, 2}, {256, 192}}) {
    const Image image = noise(w, h, 7);
    write_png(folder.path() / "x.png", image);
    EXPECT_TRUE(read_png(folder.path() / "x.png") == image) << w << "x" << h;
    EXPECT_TRUE(encode_png(image) == encode_png(image));
  }
  EXPECT_EQ(entries_of(folder), 1u);
}

TEST(Png, ReadsFilesOfOtherPrograms) {
  const Image drawn = read_png(source_path("tests/goldens/frames/input.shape.png"));
  EXPECT_EQ(drawn.width, 256);
  EXPECT_EQ(drawn.height, 192);
  const std::uint8_t* ground = drawn.pixel(4, 4);
  EXPECT_EQ(ground[0], 114);
  EXPECT_EQ(ground[1], 114);
}

TEST(Png, ReadsEveryKind) {
  if (std::system("ffmpeg -version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no ffmpeg program here";
  const TemporaryFolder folder;
  const Image image = moving_picture(34, 21, 3);
  const auto source = folder.path() / "x.png";
  write_png(source, image);
  for (const char* kind : {"rgba", "rgb48be", "rgba64be", "gray", "gray16be", "ya8", "ya16be", "monob", "pal8"}) {
    const auto target = folder.path() / (std::string(kind) + ".png");
    output_of("ffmpeg -v error -y -i " + source.string() + " -pix_fmt " + kind + " " + target.string() + " 2>&1");
    const Image read = read_png(target);
    ASSERT_EQ(read.width, 34) << kind;
    const std::string name = kind;
    const bool grey = name.find("gray") == 0 || name.find("ya") == 0 || name == "monob";
    for (int x = 0; x < 34; ++x) {
      const std::uint8_t *p = read.pixel(x, 10), *q = image.pixel(x, 10);
      if (grey) {
        EXPECT_TRUE(p[0] == p[1] && p[1] == p[2]) << kind;
        EXPECT_NEAR(p[0], 0.299 * q[0] + 0.587 * q[1] + 0.114 * q[2], name == "monob" ? 255 : 4) << kind;
      } else {
        for (int c = 0; c < 3; ++c) EXPECT_NEAR(p[c], q[c], name == "pal8" ? 64 : 1) << kind;
      }
    }
  }
}

TEST(Png, RefusesDamage) {
  const std::string good = encode_png(noise(40, 30, 1));
  const auto refused = [](const std::string& bytes) {
    return message_of<UserError>([&] { decode_png(bytes, "a.png"); });
  };
  expect_has(refused(""), "a.png: is not a PNG file");
  expect_has(refused("GIF89a"), "is not a PNG file");
  for (const std::size_t cut : {1u, 12u, 500u}) expect_has(refused(good.substr(0, good.size() - cut)), "is truncated");
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  expect_has(refused(flipped), "a.png: cannot be read");
  std::string huge = good;
  huge[16] = 0x7f;  // a width of two billion
  expect_has(refused(huge), "a.png");
}

TEST(Png, RandomDamageNeverCrashes) {
  const std::string good = encode_png(noise(12, 9, 2));
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (std::size_t k = 0; k <= random() % 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      decode_png(bytes, "a.png");
    } catch (const UserError&) {
    }
  }
}

TEST(Png, WriteErrorsNameTheFile) {
  expect_has(message_of<SceneError>([] { write_png("/no/such/folder/x.png", Image(1, 1)); }), "/no/such/folder/x.png");
}

TEST(Wav, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  for (const int channels : {1, 2, 3}) {
    Sound sound{44100, channels, {}};
    for (int i = 0; i < 7 * channels; ++i) sound.samples.push_back(static_cast<float>(i) * 1.7f - 3.0f);
    write_wav(folder.path() / "x.wav", sound);
    EXPECT_TRUE(read_wav(folder.path() / "x.wav") == sound) << channels;
  }
  write_wav(folder.path() / "e.wav", Sound{});
  EXPECT_EQ(read_wav(folder.path() / "e.wav").length(), 0u);
}

TEST(Wav, OtherProgramsReadIt) {
  if (std::system("ffmpeg -version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no ffmpeg program here";
  const TemporaryFolder folder;
  const Sound sound = tones(1000, 440, 880);
  write_wav(folder.path() / "x.wav", sound);
  output_of("ffmpeg -v error -i " + (folder.path() / "x.wav").string() + " -c:a pcm_f32le " +
            (folder.path() / "y.wav").string() + " 2>&1");
  EXPECT_TRUE(read_wav(folder.path() / "y.wav") == sound);
  output_of("ffmpeg -v error -i " + (folder.path() / "x.wav").string() + " -c:a pcm_s16le " +
            (folder.path() / "z.wav").string() + " 2>&1");
  expect_has(message_of<UserError>([&] { read_wav(folder.path() / "z.wav"); }),
             "z.wav: holds samples of format 1 with 16 bits");
}

TEST(Wav, RefusesDamage) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& bytes) {
    const auto path = write_into(folder, "x.wav", bytes);
    return message_of<UserError>([&] { read_wav(path); });
  };
  expect_has(refused(""), "x.wav: is not a WAV file");
  expect_has(refused("RIFF....WAVE"), "holds no samples");
  write_wav(folder.path() / "good.wav", tones(100, 440, 440));
  std::ifstream in(folder.path() / "good.wav", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  expect_has(refused(good.substr(0, good.size() - 1)), "is truncated");
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string bytes = good;
    for (std::size_t k = 0; k <= random() % 3; ++k) bytes[random() % 58] = static_cast<char>(random());
    try {
      read_wav(write_into(folder, "x.wav", bytes));
    } catch (const UserError&) {
    }
  }
}

}  // namespace h3::test
