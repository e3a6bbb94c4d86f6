#include <cmath>

#include "base/file.h"
#include "media/helpers.h"
#include "media/paced_clip.h"
#include "media/probe.h"
#include "media/resize.h"
#include "media_maker.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace h3::test {

namespace fs = std::filesystem;

static std::vector<Image> paced(const fs::path& path, const ReadOptions& options = {}) {
  PacedClip clip(path, options);
  std::vector<Image> frames;
  for (Image frame; clip.next(frame);) frames.push_back(frame);
  return frames;
}

// The stored frame that each slot shows, by its painted number.
static std::vector<int> numbers(const fs::path& path) {
  std::vector<int> list;
  for (const Image& frame : paced(path)) list.push_back(number_of(frame.pixel(frame.width / 2, frame.height / 2)[0]));
  return list;
}

// Reading and probing refuse alike.
static std::string refused_clip(const fs::path& path) {
  const std::string reading = message_of<UserError>([&] { paced(path); });
  EXPECT_EQ(message_of<UserError>([&] { probe_media(path); }), reading);
  expect_has(reading, path.string() + ": ");
  return reading;
}

// spec/text.md 3.2
static std::vector<int> expected_numbers(int count, double rate) {
  std::vector<int> list;
  for (int i = 0; i < count; ++i)
    for (auto slot = std::floor(i * 24 / rate + 0.5); slot < std::floor((i + 1) * 24 / rate + 0.5); ++slot)
      list.push_back(i);
  return list;
}

TEST(OddClips, EveryUsualRateInSeveralContainers) {
  const TemporaryFolder folder;
  struct Container {
    const char *ending, *codec;
  };
  for (const Container& container : {Container{"mkv", "ffv1"}, {"mp4", "mpeg4"}, {"avi", "ffv1"}, {"nut", "ffv1"}})
    for (const AVRational rate : {AVRational{24000, 1001},
                                  {24, 1},
                                  {25, 1},
                                  {30000, 1001},
                                  {30, 1},
                                  {48, 1},
                                  {50, 1},
                                  {60000, 1001},
                                  {60, 1}}) {
      const auto path = folder.path() / (std::string("x.") + container.ending);
      make_media(path, MadeVideo{.codec = container.codec, .ticks = ticks_up_to(49), .tick = av_inv_q(rate)});
      const auto expected = expected_numbers(49, av_q2d(rate));
      EXPECT_EQ(numbers(path), expected) << container.ending << " " << av_q2d(rate);
      const MediaFacts facts = probe_media(path);
      EXPECT_EQ(facts.kind, MediaKind::clip);
      EXPECT_EQ(facts.frames, static_cast<std::int64_t>(expected.size())) << container.ending << " " << av_q2d(rate);
      EXPECT_NEAR(facts.frame_rate, av_q2d(rate), 1e-6) << container.ending;
      EXPECT_FALSE(facts.has_sound());
    }
}

TEST(OddClips, VariableRatesRunAtTheirTrueSpeed) {
  const TemporaryFolder folder;
  for (const char* name : {"x.mkv", "x.mov"}) {
    const auto path = folder.path() / name;
    make_media(path, MadeVideo{.codec = std::string(name) == "x.mov" ? "mpeg4" : "ffv1",
                               .ticks = {0, 40, 417, 430, 460, 585, 710},
                               .last_hold = 125,
                               .tick = {1, 1000}});
    EXPECT_EQ(numbers(path), (std::vector<int>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6})) << name;
    EXPECT_EQ(probe_media(path).frames, 20) << name;
  }
}

TEST(OddClips, ALateStartIsNoPause) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> ticks = ticks_up_to(30);
  for (auto& t : ticks) t += 100;
  for (const char* name : {"x.mkv", "x.nut"}) {
    make_media(folder.path() / name, MadeVideo{.ticks = ticks});
    EXPECT_EQ(numbers(folder.path() / name), expected_numbers(30, 24)) << name;
  }
}

TEST(OddClips, AllTurnsAndMirrors) {
  const TemporaryFolder folder;
  // A clip with a white corner at the top left and a grey one at the top right; a, b, c, d of the matrix, and where the
  // corners are to be seen: white right? below? grey right? below?
  const Painter corners = [](int, double x, double y) {
    return std::array<int, 4>{y > 0.5 ? 16 : x < 0.25 ? 235 : x > 0.75 ? 126 : 16, 128, 128, 255};
  };
  struct Turn {
    std::array<std::int32_t, 4> matrix;
    bool white_right, white_below, grey_right, grey_below;
  };
  for (const Turn& turn : {Turn{{1, 0, 0, 1}, false, false, true, false},
                           {{-1, 0, 0, 1}, true, false, false, false},
                           {{-1, 0, 0, -1}, true, true, false, true},
                           {{1, 0, 0, -1}, false, true, true, true},
                           {{0, 1, 1, 0}, false, false, false, true},
                           {{0, 1, -1, 0}, true, false, true, true},
                           {{0, -1, -1, 0}, true, true, true, false},
                           {{0, -1, 1, 0}, false, true, false, false}}) {
    const auto path = folder.path() / "x.mov";
    make_media(path, MadeVideo{.codec = "ffv1", .ticks = ticks_up_to(2), .turn = turn.matrix, .paint = corners});
    const std::vector<Image> frames = paced(path);
    ASSERT_EQ(frames.size(), 2u);
    const Image& frame = frames[0];
    const bool swapped = turn.matrix[0] == 0;
    ASSERT_EQ(frame.width, swapped ? 16 : 32);
    ASSERT_EQ(frame.height, swapped ? 32 : 16);
    const auto level = [&](bool right, bool below) {
      return frame.pixel(right ? frame.width - 2 : 1, below ? frame.height - 2 : 1)[0];
    };
    EXPECT_EQ(level(turn.white_right, turn.white_below), 255) << turn.matrix[0] << turn.matrix[1];
    EXPECT_NEAR(level(turn.grey_right, turn.grey_below), 128, 1) << turn.matrix[0] << turn.matrix[1];
    const MediaFacts facts = probe_media(path);
    EXPECT_EQ(facts.width, frame.width);
    EXPECT_EQ(facts.height, frame.height);
  }
  make_media(folder.path() / "y.mov",
             MadeVideo{.ticks = ticks_up_to(2), .turn = std::array<std::int32_t, 4>{1, 1, -1, 1}});
  expect_has(refused_clip(folder.path() / "y.mov"), "no quarter turn");
}

TEST(OddClips, PixelAspectShapesTheCanvas) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.mkv", MadeVideo{.ticks = ticks_up_to(2), .pixel_aspect = {4, 3}});
  const MediaFacts facts = probe_media(folder.path() / "x.mkv");
  EXPECT_EQ(facts.width, 43);
  EXPECT_EQ(facts.height, 16);
  const PacedClip clip(folder.path() / "x.mkv");
  EXPECT_EQ(clip.width(), 43);
  EXPECT_EQ(paced(folder.path() / "x.mkv")[0].width, 32);
  make_media(
      folder.path() / "y.mov",
      MadeVideo{.ticks = ticks_up_to(2), .pixel_aspect = {2, 1}, .turn = std::array<std::int32_t, 4>{0, 1, -1, 0}});
  EXPECT_EQ(probe_media(folder.path() / "y.mov").width, 16);
  EXPECT_EQ(probe_media(folder.path() / "y.mov").height, 64);
}

// What a colour in Y'CbCr of full precision is in RGB.
static std::array<double, 3> rgb_of(double y, double u, double v, double red_weight, double blue_weight) {
  const double green_weight = 1 - red_weight - blue_weight;
  const double r = y + 2 * (1 - red_weight) * v, b = y + 2 * (1 - blue_weight) * u;
  return {255 * r, 255 * (y - red_weight * r - blue_weight * b) / green_weight, 255 * b};
}

TEST(OddClips, MatrixRangeAndDepthAreTheirOwn) {
  const TemporaryFolder folder;
  struct Case {
    AVPixelFormat format;
    AVColorSpace matrix;
    AVColorRange range;
    double red, blue;
  };
  const AVColorSpace bt601 = AVCOL_SPC_SMPTE170M, bt709 = AVCOL_SPC_BT709, untagged = AVCOL_SPC_UNSPECIFIED;
  for (const Case& c : {Case{AV_PIX_FMT_YUV420P, bt601, AVCOL_RANGE_MPEG, 0.299, 0.114},
                        {AV_PIX_FMT_YUV420P, bt709, AVCOL_RANGE_MPEG, 0.2126, 0.0722},
                        {AV_PIX_FMT_YUV420P, untagged, AVCOL_RANGE_UNSPECIFIED, 0.299, 0.114},
                        {AV_PIX_FMT_YUV420P, bt709, AVCOL_RANGE_JPEG, 0.2126, 0.0722},
                        {AV_PIX_FMT_YUV444P, bt601, AVCOL_RANGE_JPEG, 0.299, 0.114},
                        {AV_PIX_FMT_YUV422P10, bt709, AVCOL_RANGE_MPEG, 0.2126, 0.0722},
                        {AV_PIX_FMT_YUV420P10, bt709, AVCOL_RANGE_JPEG, 0.2126, 0.0722},
                        {AV_PIX_FMT_YUV444P12, bt601, AVCOL_RANGE_MPEG, 0.299, 0.114}}) {
    const int depth = av_pix_fmt_desc_get(c.format)->comp[0].depth, unit = 1 << (depth - 8);
    const int y = 120 * unit, u = 140 * unit, v = 100 * unit;
    make_media(folder.path() / "x.mkv", MadeVideo{.format = c.format,
                                                  .ticks = ticks_up_to(2),
                                                  .matrix = c.matrix,
                                                  .range = c.range,
                                                  .paint = [=](int, double, double) {
                                                    return std::array<int, 4>{y, u, v, 0};
                                                  }});
    const bool full = c.range == AVCOL_RANGE_JPEG;
    const double most = (1 << depth) - 1;
    const double luma = full ? y / most : (y / double(unit) - 16) / 219;
    const auto chroma = [&](int value) { return (value / double(unit) - 128) / (full ? most / unit : 224); };
    const auto expected = rgb_of(luma, chroma(u), chroma(v), c.red, c.blue);
    const Image frame = paced(folder.path() / "x.mkv").at(0);
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(frame.pixel(9, 7)[i], expected[static_cast<std::size_t>(i)], 1.1)
          << av_get_pix_fmt_name(c.format) << " " << c.matrix << " " << c.range;
  }
}

TEST(OddClips, WideColoursAreRefusedByName) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.mkv";
  const auto refused = [&](AVColorTransferCharacteristic transfer, AVColorPrimaries primaries, AVColorSpace matrix) {
    make_media(path, MadeVideo{.format = AV_PIX_FMT_YUV420P10,
                               .ticks = ticks_up_to(2),
                               .matrix = matrix,
                               .range = AVCOL_RANGE_MPEG,
                               .primaries = primaries,
                               .transfer = transfer,
                               .paint = [](int, double, double) {
                                 return std::array<int, 4>{500, 512, 512, 0};
                               }});
    return refused_clip(path);
  };
  expect_has(refused(AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_NCL), "has HDR (PQ) colours");
  expect_has(refused(AVCOL_TRC_ARIB_STD_B67, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_NCL), "has HDR (HLG) colours");
  expect_has(refused(AVCOL_TRC_BT2020_10, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_NCL), "has BT.2020 wide-gamut colours");
  expect_has(refused(AVCOL_TRC_BT709, AVCOL_PRI_BT709, AVCOL_SPC_YCGCO), "has ycgco colours");
}

TEST(OddClips, AlphaIsDroppedOrOverWhite) {
  const TemporaryFolder folder;
  const Painter half_clear = [](int, double x, double) { return std::array<int, 4>{81, 90, 240, x < 0.5 ? 0 : 255}; };
  make_media(folder.path() / "x.mkv", MadeVideo{.format = AV_PIX_FMT_YUVA420P,
                                                .ticks = ticks_up_to(2),
                                                .matrix = AVCOL_SPC_SMPTE170M,
                                                .range = AVCOL_RANGE_MPEG,
                                                .paint = half_clear});
  const Image dropped = paced(folder.path() / "x.mkv")[0];
  const Image white = paced(folder.path() / "x.mkv", {.alpha_on_white = true})[0];
  for (const int x : {2, 29}) {
    EXPECT_NEAR(dropped.pixel(x, 8)[0], 255, 2);
    EXPECT_NEAR(dropped.pixel(x, 8)[1], 0, 2);
  }
  EXPECT_EQ(white.pixel(2, 8)[1], 255);
  EXPECT_NEAR(white.pixel(29, 8)[1], 0, 2);
}

TEST(OddClips, GreyRgbAndOddSizes) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.mkv", MadeVideo{.format = AV_PIX_FMT_GRAY8,
                                                .width = 33,
                                                .height = 17,
                                                .ticks = ticks_up_to(3),
                                                .paint = [](int frame, double, double) {
                                                  return std::array<int, 4>{100 + frame, 0, 0, 0};
                                                }});
  const std::vector<Image> grey = paced(folder.path() / "x.mkv");
  ASSERT_EQ(grey.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(grey[static_cast<std::size_t>(i)].pixel(32, 16)[1], 100 + i);
  EXPECT_EQ(probe_media(folder.path() / "x.mkv").width, 33);
  make_media(folder.path() / "y.mkv", MadeVideo{.format = AV_PIX_FMT_BGR0,
                                                .width = 31,
                                                .height = 3,
                                                .ticks = ticks_up_to(2),
                                                .paint = [](int, double, double) {
                                                  return std::array<int, 4>{200, 100, 50, 0};
                                                }});
  const Image frame = paced(folder.path() / "y.mkv").at(1);
  EXPECT_EQ((std::vector<int>{frame.rgb[0], frame.rgb[1], frame.rgb[2]}), (std::vector<int>{200, 100, 50}));
}

TEST(OddClips, AGifIsAClip) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.gif", MadeVideo{.codec = "gif",
                                                .format = AV_PIX_FMT_GRAY8,
                                                .ticks = {0, 25, 50},
                                                .last_hold = 25,
                                                .tick = {1, 100},
                                                .paint = [](int frame, double, double) {
                                                  return std::array<int, 4>{80 * frame, 0, 0, 0};
                                                }});
  const MediaFacts facts = probe_media(folder.path() / "x.gif");
  EXPECT_EQ(facts.kind, MediaKind::clip);
  const std::vector<Image> frames = paced(folder.path() / "x.gif");
  ASSERT_GE(frames.size(), 13u);
  EXPECT_EQ(facts.frames, static_cast<std::int64_t>(frames.size()));
  EXPECT_EQ(frames[5].rgb[0], 0);
  EXPECT_EQ(frames[6].rgb[0], 80);
  EXPECT_EQ(frames[12].rgb[0], 160);
}

TEST(OddClips, FramesAreScaledAndCutAsTheyAreRead) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.mkv", MadeVideo{.ticks = ticks_up_to(20), .tick = {1, 12}});
  const std::vector<Image> all = paced(folder.path() / "x.mkv");
  EXPECT_EQ(all.size(), 40u);
  const std::vector<Image> some = read_clip_frames(folder.path() / "x.mkv", {}, 7, 64, 48);
  ASSERT_EQ(some.size(), 7u);
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_TRUE(some[i] == resize_lanczos(all[i], 64, 48)) << i;
  EXPECT_EQ(read_clip_frames(folder.path() / "x.mkv", {}, 100, 64, 48).size(), 40u);
}

TEST(OddClips, ListsAndAddressesAreRefusedByName) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.mkv", MadeVideo{.ticks = ticks_up_to(30)});
  const auto refused = [&](const std::string& name, const std::string& content) {
    return refused_clip(write_into(folder, name, content));
  };
  expect_has(refused("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1,\nx.mkv\n#EXT-X-ENDLIST\n"),
             "is an M3U or HLS playlist");
  expect_has(refused("clip.mp4", "#EXTM3U\n#EXTINF:1,\nhttp://localhost/a.ts\n"), "is an M3U or HLS playlist");
  expect_has(refused("plain.m3u", "x.mkv\n"), "is an M3U or HLS playlist");
  expect_has(refused("a.mp4", "ffconcat version 1.0\nfile x.mkv\n"), "is a concat list");
  expect_has(refused("a.mpd", "<?xml version=\"1.0\"?><MPD></MPD>"), "is a DASH manifest");
  expect_has(refused("a.pls", "[playlist]\nFile1=x.mkv\n"), "is a playlist");
  expect_has(refused("a.sdp", "v=0\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n"), "is an SDP description");
  expect_has(refused_clip("http://localhost/a.mp4"), "is a URL; only local files are read");
  expect_has(refused_clip("concat:a.mp4|b.mp4"), "there is no such file");
}

TEST(OddClips, APercentSignIsNoPattern) {
  const TemporaryFolder folder;
  make_media(folder.path() / "x.mkv", MadeVideo{.ticks = ticks_up_to(3)});
  std::filesystem::rename(folder.path() / "x.mkv", folder.path() / "100%03d.mkv");
  EXPECT_EQ(numbers(folder.path() / "100%03d.mkv").size(), 3u);
}

TEST(OddClips, BrokenOnesAreRefused) {
  const TemporaryFolder folder;
  expect_has(refused_clip(folder.path() / "gone.mp4"), "there is no such file");
  expect_has(refused_clip(write_into(folder, "empty.mp4", "")), "is empty");
  expect_has(refused_clip(write_into(folder, "text.mp4", "hello")), "cannot be read");
  expect_has(refused_clip(folder.path()), "is a folder");
  for (const char* name : {"x.mkv", "x.mov", "x.avi"}) {
    const auto path = folder.path() / name;
    make_media(path,
               MadeVideo{.ticks = ticks_up_to(48), .paint = [](int i, double x, double y) {
                           return std::array<int, 4>{16 + (i * 37 + int(x * 1000) * int(y * 1000)) % 200, 128, 128, 0};
                         }});
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const std::string reason = message_of<UserError>([&] { paced(path); });
    expect_has(reason, path.string() + ": ");
  }
  make_media(folder.path() / "short.mkv", MadeVideo{.ticks = {0, 1}, .tick = {1, 240}});
  expect_has(message_of<UserError>([&] { probe_media(folder.path() / "short.mkv"); }),
             "holds no video frame that lasts 1/24 s");
  make_media(folder.path() / "none.mkv", MadeVideo{});
  expect_has(message_of<UserError>([&] { probe_media(folder.path() / "none.mkv"); }), "none.mkv: ");
}

TEST(OddClips, RandomDamageNeverCrashes) {
  const TemporaryFolder folder;
  make_media(folder.path() / "good.mkv", MadeVideo{.codec = "mpeg4", .ticks = ticks_up_to(10)});
  const std::string good = read_file(folder.path() / "good.mkv");
  std::uint32_t state = 1;
  const auto random = [&] { return state = state * 1664525 + 1013904223, state >> 8; };
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good;
    for (int k = 0; k < 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto path = write_into(folder, "x.mkv", bytes);
    try {
      probe_media(path);
      paced(path);
    } catch (const UserError&) {
    }
  }
}

}  // namespace h3::test
