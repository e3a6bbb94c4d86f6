#include "media/clip_reader.h"
#include "media/helpers.h"
#include "media/mp4.h"
#include "media/picture_quality.h"

namespace h3::test {

static const std::string recipe =
    R"({"program":"h3render","scene":{"prompt":"a \"red\" \n 你好 😀","seed":18446744073709551615}})";

static Mp4Options options_of(int width, int height) {
  Mp4Options options;
  options.width = width;
  options.height = height;
  options.preset = "veryfast";
  options.title = "dawn";
  options.comment = recipe;
  return options;
}

static void write_clip(const std::filesystem::path& path, const Mp4Options& options, int frames, const Sound& sound) {
  Mp4Writer writer(path, options);
  for (int i = 0; i < frames; ++i) writer.add_frame(moving_picture(options.width, options.height, i).rgb);
  writer.add_sound(sound);
  writer.finish();
}

TEST(Mp4, IsWhatWasAskedFor) {
  const TemporaryFolder folder;
  write_clip(folder.path() / "x.mp4", options_of(256, 192), 22, tones(29600, 440, 880));
  EXPECT_EQ(entries_of(folder), 1u);
  const VideoFile clip = read_clip(folder.path() / "x.mp4");
  EXPECT_EQ(clip.info.width, 256);
  EXPECT_EQ(clip.info.height, 192);
  EXPECT_EQ(clip.info.frames, 22);
  EXPECT_DOUBLE_EQ(clip.info.frame_rate, 24);
  EXPECT_NEAR(clip.info.video_seconds, 22.0 / 24, 1e-6);
  EXPECT_NEAR(clip.info.audio_seconds, 22.0 / 24, 1.0 / 32000);
  EXPECT_EQ(clip.info.video_codec, "h264");
  EXPECT_EQ(clip.info.pixel_format, "yuv420p");
  EXPECT_EQ(clip.info.color_space, "bt709");
  EXPECT_EQ(clip.info.color_range, "tv");
  EXPECT_EQ(clip.info.audio_codec, "aac");
  EXPECT_EQ(clip.info.sample_rate, 32000);
  EXPECT_EQ(clip.info.channels, 2);
  EXPECT_EQ(clip.info.tags.at("comment"), recipe);
  EXPECT_EQ(clip.info.tags.at("title"), "dawn");
  ASSERT_EQ(clip.frames.size(), 22u);
  for (int i = 0; i < 22; ++i)
    EXPECT_GT(difference_of(moving_picture(256, 192, i), clip.frames[static_cast<std::size_t>(i)]).psnr(), 38) << i;
}

// The level of `hz` in samples, by projection.
static double level(std::span<const float> samples, double hz) {
  double c = 0, s = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = 2 * M_PI * hz * static_cast<double>(i) / 32000;
    c += samples[i] * std::cos(t);
    s += samples[i] * std::sin(t);
  }
  return 2 * std::hypot(c, s) / static_cast<double>(samples.size());
}

TEST(Mp4, SoundIsTrimmedToThePicture) {
  const TemporaryFolder folder;
  for (const bool trim : {true, false}) {
    Mp4Options options = options_of(64, 64);
    options.trim_sound = trim;
    write_clip(folder.path() / "x.mp4", options, 22, tones(29600, 440, 880));
    const Sound sound = read_clip_sound(folder.path() / "x.mp4");
    EXPECT_EQ(sound.length(), trim ? 29334u : 29600u);
    EXPECT_EQ(sound.rate, 32000);
    ASSERT_EQ(sound.channels, 2);
    EXPECT_NEAR(level(sound.channel(0), 440), 0.3, 0.02);
    EXPECT_NEAR(level(sound.channel(1), 880), 0.3, 0.02);
    EXPECT_LT(level(sound.channel(0), 880), 0.01);
  }
  // Shorter sound is never padded.
  write_clip(folder.path() / "x.mp4", options_of(64, 64), 5, tones(6400, 440, 440));
  EXPECT_EQ(read_clip_sound(folder.path() / "x.mp4").length(), 6400u);
}

TEST(Mp4, ASoundStaysWhereItIs) {
  const TemporaryFolder folder;
  Sound click{32000, 2, std::vector<float>(2 * 29600)};
  for (const std::size_t at : {10000u, 29600u + 20000u}) click.samples[at] = 0.9f;
  write_clip(folder.path() / "x.mp4", options_of(64, 64), 22, click);
  const Sound sound = read_clip_sound(folder.path() / "x.mp4");
  const auto loudest = [](std::span<const float> c) { return std::max_element(c.begin(), c.end()) - c.begin(); };
  EXPECT_NEAR(static_cast<double>(loudest(sound.channel(0))), 10000, 2);
  EXPECT_NEAR(static_cast<double>(loudest(sound.channel(1))), 20000, 2);
}

TEST(Mp4, SoundMayComeFirst) {
  const TemporaryFolder folder;
  Mp4Writer writer(folder.path() / "x.mp4", options_of(64, 32));
  writer.add_sound(tones(6400, 440, 440));
  for (int i = 0; i < 5; ++i) writer.add_frame(moving_picture(64, 32, i).rgb);
  writer.finish();
  EXPECT_EQ(read_clip(folder.path() / "x.mp4").frames.size(), 5u);
}

TEST(Mp4, TheIndexComesFirst) {
  const TemporaryFolder folder;
  write_clip(folder.path() / "x.mp4", options_of(64, 64), 5, tones(6400, 440, 440));
  std::ifstream in(folder.path() / "x.mp4", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));
}

TEST(Mp4, TheSameRenderGivesTheSameBytes) {
  const TemporaryFolder folder;
  for (const char* name : {"a.mp4", "b.mp4"})
    write_clip(folder.path() / name, options_of(128, 96), 22, tones(29600, 440, 880));
  output_of("cmp " + (folder.path() / "a.mp4").string() + " " + (folder.path() / "b.mp4").string());
}

TEST(Mp4, TheCommentSurvivesARemux) {
  if (std::system("ffmpeg -version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no ffmpeg program here";
  const TemporaryFolder folder;
  write_clip(folder.path() / "x.mp4", options_of(64, 64), 22, tones(29600, 440, 880));
  output_of("ffmpeg -v error -i " + (folder.path() / "x.mp4").string() + " -c copy " +
            (folder.path() / "y.mp4").string() + " 2>&1");
  const VideoFile copy = read_clip(folder.path() / "y.mp4");
  EXPECT_EQ(copy.info.tags.at("comment"), recipe);
  EXPECT_EQ(copy.frames.size(), 22u);
  output_of("ffmpeg -v error -i " + (folder.path() / "x.mp4").string() + " -c copy " +
            (folder.path() / "z.mkv").string() + " 2>&1");
  EXPECT_EQ(read_clip(folder.path() / "z.mkv").frames.size(), 22u);
}

TEST(Mp4, OtherEncodersStandIn) {
  const TemporaryFolder folder;
  Mp4Options options = options_of(64, 64);
  options.encoder = "mpeg4";
  Mp4Writer writer(folder.path() / "x.mp4", options);
  for (int i = 0; i < 5; ++i) writer.add_frame(moving_picture(64, 64, i).rgb);
  writer.add_sound(tones(6400, 440, 440));
  writer.finish();
  EXPECT_EQ(writer.encoder(), "mpeg4");
  expect_has(writer.note(), "mpeg4");
  const VideoFile clip = read_clip(folder.path() / "x.mp4");
  EXPECT_EQ(clip.info.video_codec, "mpeg4");
  ASSERT_EQ(clip.frames.size(), 5u);
  EXPECT_GT(difference_of(moving_picture(64, 64, 3), clip.frames[3]).psnr(), 30);
  options.encoder = "no such encoder";
  expect_has(message_of<SceneError>([&] { Mp4Writer(folder.path() / "y.mp4", options); }), "y.mp4: cannot be written");
}

TEST(Mp4, UnfinishedFilesVanish) {
  const TemporaryFolder folder;
  {
    Mp4Writer writer(folder.path() / "x.mp4", options_of(64, 64));
    writer.add_frame(moving_picture(64, 64, 0).rgb);
    EXPECT_EQ(entries_of(folder), 1u);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "x.mp4"));
  }
  EXPECT_EQ(entries_of(folder), 0u);
}

TEST(Mp4, WrongUseIsAnInternalError) {
  const TemporaryFolder folder;
  EXPECT_THROW(Mp4Writer(folder.path() / "x.mp4", options_of(63, 64)), RunError);
  Mp4Writer writer(folder.path() / "x.mp4", options_of(64, 64));
  EXPECT_THROW(writer.add_frame(moving_picture(64, 32, 0).rgb), RunError);
  EXPECT_THROW(writer.finish(), RunError);
  Sound broken = tones(6400, 440, 440);
  broken.samples[7] = NAN;
  EXPECT_THROW(writer.add_sound(broken), RunError);
  EXPECT_THROW(writer.add_sound(Sound{}), RunError);
}

TEST(ClipReader, RefusesWhatIsNoClip) {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path) {
    return message_of<UserError>([&] { read_clip(path); });
  };
  expect_has(refused(folder.path() / "gone.mp4"), "gone.mp4: cannot be read: there is no such file");
  expect_has(refused(folder.path()), "is a folder");
  expect_has(refused(write_into(folder, "empty.mp4", "")), "empty.mp4: is empty");
  expect_has(refused(write_into(folder, "text.mp4", "hello")), "text.mp4: cannot be read");
  expect_has(refused(write_into(folder, "list.mp4", "#EXTM3U\n#EXTINF:1,\nhttp://localhost/a.ts\n")),
             "list.mp4: is an M3U or HLS playlist");
  expect_has(refused(write_into(folder, "concat.mp4", "ffconcat version 1.0\nfile 'x.mp4'\n")),
             "concat.mp4: is a concat list");
  write_clip(folder.path() / "x.mp4", options_of(64, 64), 22, tones(29600, 440, 880));
  std::filesystem::resize_file(folder.path() / "x.mp4", std::filesystem::file_size(folder.path() / "x.mp4") / 2);
  expect_has(refused(folder.path() / "x.mp4"), "x.mp4");
}

}  // namespace h3::test
