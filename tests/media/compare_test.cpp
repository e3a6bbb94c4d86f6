#include "media/compare.h"

#include "media/helpers.h"
#include "media/mp4.h"
#include "media/png.h"
#include "media/wav.h"

namespace h3::test {

TEST(Quality, OfKnownDifferences) {
  const Image a = moving_picture(64, 48, 0);
  const PictureDifference same = difference_of(a, a);
  EXPECT_TRUE(same.equal);
  EXPECT_TRUE(std::isinf(same.psnr()));
  EXPECT_EQ(same.ssim, 1);
  Image b = a;
  b.pixel(7, 3)[2] = static_cast<std::uint8_t>(b.pixel(7, 3)[2] + 9);
  const PictureDifference one = difference_of(a, b);
  EXPECT_FALSE(one.equal);
  EXPECT_EQ(one.largest, 9);
  EXPECT_NEAR(one.psnr(), 10 * std::log10(255.0 * 255.0 / (81.0 / (64 * 48 * 3))), 1e-9);
  EXPECT_LT(one.ssim, 1);
  EXPECT_GT(one.ssim, 0.99);
  Image black(16, 16), white(16, 16);
  std::fill(white.rgb.begin(), white.rgb.end(), std::uint8_t{255});
  EXPECT_NEAR(difference_of(black, white).psnr(), 0, 1e-9);
  EXPECT_NEAR(difference_of(black, white).ssim, 6.5025 / (255 * 255 + 6.5025), 1e-9);
  EXPECT_LT(difference_of(Image(3, 2), Image(3, 2, std::vector<std::uint8_t>(18, 200))).ssim, 0.1);
  EXPECT_THROW(difference_of(Image(3, 2), Image(2, 3)), RunError);
}

TEST(Quality, OfSounds) {
  const Sound a = tones(1000, 440, 880);
  EXPECT_TRUE(difference_of(a, a).equal);
  EXPECT_TRUE(std::isinf(difference_of(a, a).snr));
  Sound b = a;
  for (std::size_t i = 0; i < 1000; ++i) b.samples[i] *= 1.1f;  // the left channel, 20 dB
  const SoundDifference d = difference_of(a, b);
  EXPECT_NEAR(d.channel_snr.at(0), 20, 1e-3);
  EXPECT_TRUE(std::isinf(d.channel_snr.at(1)));
  EXPECT_NEAR(d.snr, 23.01, 0.1);
  EXPECT_NEAR(d.largest, 0.03, 1e-4);
  const SoundDifference shorter = difference_of(a, trimmed(a, 500));
  EXPECT_FALSE(shorter.equal);
  EXPECT_TRUE(std::isinf(shorter.snr));
  Sound other = a;
  other.rate = 44100;
  EXPECT_FALSE(difference_of(a, other).comparable);
  EXPECT_FALSE(difference_of(a, Sound{}).comparable);
}

static void write_frames(const std::filesystem::path& folder, int frames, int changed) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < frames; ++i) {
    Image image = moving_picture(64, 48, i);
    if (i == changed) image.pixel(5, 5)[0] = static_cast<std::uint8_t>(image.pixel(5, 5)[0] + 3);
    write_png(folder / fmt::format("{:06}.png", i), image);
  }
  write_wav(std::filesystem::path(folder).replace_extension(".wav"), tones(6400, 440, 440));
}

TEST(Compare, FoldersOfFrames) {
  const TemporaryFolder folder;
  write_frames(folder.path() / "a.frames", 5, -1);
  write_frames(folder.path() / "b.frames", 5, 2);
  write_frames(folder.path() / "c.frames", 4, -1);
  const Comparison same = compare_renders(folder.path() / "a.frames", folder.path() / "a.frames/");
  EXPECT_TRUE(same.equal());
  EXPECT_TRUE(same.sound.equal);
  const Comparison one = compare_renders(folder.path() / "a.frames", folder.path() / "b.frames");
  EXPECT_FALSE(one.equal());
  EXPECT_EQ(one.equal_frames(), 4);
  EXPECT_FALSE(one.frames[2].equal);
  EXPECT_EQ(one.largest(), 3);
  EXPECT_NEAR(one.psnr(), one.frames[2].psnr() + 10 * std::log10(5), 1e-9);
  const Comparison fewer = compare_renders(folder.path() / "a.frames", folder.path() / "c.frames");
  EXPECT_FALSE(fewer.equal());
  EXPECT_EQ(fewer.frames_a, 5);
  EXPECT_EQ(fewer.frames_b, 4);
  EXPECT_EQ(fewer.frames.size(), 4u);
  EXPECT_TRUE(compare_renders(folder.path() / "a.frames/000001.png", folder.path() / "b.frames/000001.png").equal());
}

TEST(Compare, AClipWithItsFrames) {
  const TemporaryFolder folder;
  write_frames(folder.path() / "x.frames", 22, -1);
  Mp4Options options;
  options.width = 64;
  options.height = 48;
  Mp4Writer writer(folder.path() / "x.mp4", options);
  for (int i = 0; i < 22; ++i) writer.add_frame(moving_picture(64, 48, i).rgb);
  writer.add_sound(tones(6400, 440, 440));
  writer.finish();
  const Comparison c = compare_renders(folder.path() / "x.frames", folder.path() / "x.mp4");
  EXPECT_EQ(c.frames_a, 22);
  EXPECT_EQ(c.frames_b, 22);
  EXPECT_GT(c.psnr(), 38);
  EXPECT_GT(c.ssim(), 0.97);
  EXPECT_GT(c.sound.snr, 12);
  EXPECT_FALSE(c.equal());
  EXPECT_TRUE(compare_renders(folder.path() / "x.mp4", folder.path() / "x.mp4").equal());
}

TEST(Compare, Reports) {
  const TemporaryFolder folder;
  write_frames(folder.path() / "a.frames", 5, -1);
  write_frames(folder.path() / "b.frames", 4, 2);
  const Comparison c = compare_renders(folder.path() / "a.frames", folder.path() / "b.frames");
  const std::string table = table_of(c);
  expect_has(table, "frames  3 of 4 equal, 64x48; one has 5 frames, the other 4");
  expect_has(table, "sound   equal, 6400 samples");
  expect_has(table, "    0  yes          0      inf  1.00000\n");
  expect_has(table, "    2  no           3");
  const auto json = to_json(c);
  EXPECT_EQ(json["frames_equal"], 3);
  EXPECT_EQ(json["by_frame"].size(), 4u);
  EXPECT_TRUE(json["by_frame"][0]["psnr_db"].is_null());
  EXPECT_EQ(json["by_frame"][2]["largest_difference"], 3);
  EXPECT_EQ(json["sound"]["equal"], true);
  EXPECT_EQ(json["equal"], false);
}

TEST(Compare, Refuses) {
  const TemporaryFolder folder;
  write_frames(folder.path() / "a.frames", 1, -1);
  write_png(folder.path() / "small.png", Image(8, 8));
  std::filesystem::create_directory(folder.path() / "empty");
  const auto refused = [&](const char* name) {
    return message_of<UserError>([&] { compare_renders(folder.path() / "a.frames", folder.path() / name); });
  };
  expect_has(refused("gone.mp4"), "gone.mp4: is not there");
  expect_has(refused("empty"), "empty: holds no .png frames");
  expect_has(refused("small.png"), "64x48 and 8x8: expected frames of one size");
}

}  // namespace h3::test
