#include <algorithm>
#include <cstring>
#include <random>

#include "base/file.h"
#include "media/ffmpeg.h"
#include "media/helpers.h"
#include "media/picture.h"
#include "media/png.h"
#include "media/probe.h"
#include "media/resize.h"
#include "support/goldens.h"

namespace h3::test {

static std::string stored(const std::string& name) {
  return source_path("tests/media/pictures/" + name);
}

TEST(OddPictures, WebPIsAsPillowReadsIt) {
  for (const std::string name : {"webp_lossy", "webp_alpha", "webp_lossless", "webp_turned"})
    EXPECT_TRUE(read_picture(stored(name + ".webp")) == read_png(stored(name + ".png"))) << name;
}

// FFmpeg's inverse transform rounds a few samples to the neighbouring level; colours may then be three levels off.
TEST(OddPictures, JpegIsAsPillowReadsItButForRounding) {
  for (const std::string name : {"jpeg_420", "jpeg_422", "jpeg_444_progressive", "jpeg_grey", "jpeg_rgb"}) {
    const Image read = read_picture(stored(name + ".jpg")), expected = read_png(stored(name + ".png"));
    ASSERT_EQ(read.width, expected.width) << name;
    ASSERT_EQ(read.height, expected.height) << name;
    std::size_t different = 0;
    for (std::size_t i = 0; i < read.rgb.size(); ++i) {
      EXPECT_NEAR(read.rgb[i], expected.rgb[i], 3) << name;
      if (read.rgb[i] != expected.rgb[i]) ++different;
    }
    EXPECT_LT(different, read.rgb.size() / 10) << name;
  }
}

static std::string number(std::size_t value, int bytes, bool little) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * (little ? i : bytes - 1 - i)));
  return text;
}

// An EXIF block with another tag before the orientation.
static std::string exif(int orientation, bool little) {
  const auto n = [&](std::size_t value, int bytes) { return number(value, bytes, little); };
  return (little ? "II" : "MM") + n(42, 2) + n(8, 4) + n(2, 2) + n(0x0110, 2) + n(2, 2) + n(4, 4) + "cam" + '\0' +
         n(0x0112, 2) + n(3, 2) + n(1, 4) + n(static_cast<std::size_t>(orientation), 2) + n(0, 2) + n(0, 4);
}

// A JPEG with an EXIF segment after its start marker.
static std::string jpeg_with(const std::string& block) {
  const std::string jpeg = read_file(stored("jpeg_420.jpg")), segment = std::string("Exif\0\0", 6) + block;
  return jpeg.substr(0, 2) + "\xff\xe1" + number(segment.size() + 2, 2, false) + segment + jpeg.substr(2);
}

// Where the left and the right end of the first stored row are to be seen.
struct Corners {
  bool left_at_right, left_below, right_at_right, right_below;
};

TEST(OddPictures, AllEightExifOrientations) {
  const TemporaryFolder folder;
  const Image plain = read_picture(stored("jpeg_420.jpg"));
  const int w = plain.width, h = plain.height;
  const Corners corners[8] = {{false, false, true, false}, {true, false, false, false}, {true, true, false, true},
                              {false, true, true, true},   {false, false, false, true}, {true, false, true, true},
                              {true, true, true, false},   {false, true, false, false}};
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool little : {true, false}) {
      const auto path = write_into(folder, "x.jpg", jpeg_with(exif(orientation, little)));
      const Image seen = read_picture(path);
      ASSERT_EQ(seen.width, orientation >= 5 ? h : w) << orientation;
      ASSERT_EQ(seen.height, orientation >= 5 ? w : h) << orientation;
      const auto expect_at = [&](int x, bool right, bool below) {
        const std::uint8_t* pixel = seen.pixel(right ? seen.width - 1 : 0, below ? seen.height - 1 : 0);
        EXPECT_TRUE(std::equal(pixel, pixel + 3, plain.pixel(x, 0))) << orientation;
      };
      const Corners& c = corners[orientation - 1];
      expect_at(0, c.left_at_right, c.left_below);
      expect_at(w - 1, c.right_at_right, c.right_below);
      const MediaFacts facts = probe_media(path);
      EXPECT_EQ(facts.kind, MediaKind::picture);
      EXPECT_EQ(facts.format, "JPEG");
      EXPECT_EQ(facts.width, seen.width);
      EXPECT_EQ(facts.height, seen.height);
    }
}

TEST(OddPictures, DamagedExifIsNoOrientation) {
  const TemporaryFolder folder;
  const Image plain = read_picture(stored("jpeg_420.jpg"));
  for (const std::string& block : {std::string("II"), std::string(40, '\xff'), exif(9, true), exif(0, false),
                                   exif(6, true).substr(0, 30), "II" + number(42, 2, true) + number(1u << 31, 4, true)})
    EXPECT_TRUE(read_picture(write_into(folder, "x.jpg", jpeg_with(block))) == plain) << block.size();
}

// A PNG with another chunk before its pixels.
static std::string png_with(const std::string& png, const std::string& type, const std::string& data) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : type + data) {
    crc ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  const std::size_t at = png.find("IDAT") - 4;
  return png.substr(0, at) + number(data.size(), 4, false) + type + data + number(~crc, 4, false) + png.substr(at);
}

TEST(OddPictures, PngMayBeTurnedToo) {
  const TemporaryFolder folder;
  const Image image = moving_picture(6, 4, 1);
  const auto path = write_into(folder, "x", png_with(encode_png(image), "eXIf", exif(6, false)));
  EXPECT_TRUE(read_picture(path) == upright(image, Orientation::turn_right));
  EXPECT_EQ(probe_picture(path).width, 4);
  EXPECT_TRUE(decode_png(read_file(path), "x") == image);
}

// One row of pixels of any of the encoder's formats as PNG bytes.
static std::string png_of(AVPixelFormat format, const std::vector<std::uint8_t>& row, int width) {
  const AVCodec* encoder = avcodec_find_encoder(AV_CODEC_ID_PNG);
  const ffmpeg::Codec codec(avcodec_alloc_context3(encoder));
  codec->width = width;
  codec->height = 1;
  codec->pix_fmt = format;
  codec->time_base = {1, 1};
  codec->thread_count = 1;
  EXPECT_EQ(avcodec_open2(codec.get(), encoder, nullptr), 0);
  const ffmpeg::Frame frame = ffmpeg::new_frame();
  frame->format = format;
  frame->width = width;
  frame->height = 1;
  EXPECT_EQ(av_frame_get_buffer(frame.get(), 0), 0);
  std::copy(row.begin(), row.end(), frame->data[0]);
  if (format == AV_PIX_FMT_PAL8) {
    const std::uint32_t palette[2] = {0xff102030, 0x00405060};  // ARGB: the second colour is transparent
    std::memcpy(frame->data[1], palette, sizeof palette);
  }
  const ffmpeg::Packet packet = ffmpeg::new_packet();
  EXPECT_EQ(avcodec_send_frame(codec.get(), frame.get()), 0);
  EXPECT_EQ(avcodec_send_frame(codec.get(), nullptr), 0);
  EXPECT_EQ(avcodec_receive_packet(codec.get(), packet.get()), 0);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

TEST(OddPictures, DepthsPalettesGreyAndAlpha) {
  using Bytes = std::vector<std::uint8_t>;
  struct Case {
    AVPixelFormat format;
    Bytes row, dropped, white;  // two pixels
  };
  const Bytes two_greys{77, 77, 77, 200, 200, 200};
  const Case cases[] = {
      {AV_PIX_FMT_RGB24, {1, 2, 3, 250, 128, 0}, {1, 2, 3, 250, 128, 0}, {1, 2, 3, 250, 128, 0}},
      {AV_PIX_FMT_RGBA, {1, 2, 3, 255, 100, 50, 0, 51}, {1, 2, 3, 100, 50, 0}, {1, 2, 3, 224, 214, 204}},
      {AV_PIX_FMT_RGB48BE, {9, 255, 8, 0, 7, 1, 6, 6, 5, 5, 4, 4}, {9, 8, 7, 6, 5, 4}, {9, 8, 7, 6, 5, 4}},
      {AV_PIX_FMT_RGBA64BE,
       {9, 255, 8, 0, 7, 1, 255, 255, 6, 6, 5, 5, 4, 4, 0, 0},
       {9, 8, 7, 6, 5, 4},
       {9, 8, 7, 255, 255, 255}},
      {AV_PIX_FMT_GRAY8, {77, 200}, two_greys, two_greys},
      {AV_PIX_FMT_GRAY16BE, {77, 255, 200, 0}, two_greys, two_greys},
      {AV_PIX_FMT_YA8, {77, 255, 200, 0}, two_greys, {77, 77, 77, 255, 255, 255}},
      {AV_PIX_FMT_YA16BE, {77, 9, 255, 255, 200, 9, 0, 0}, two_greys, {77, 77, 77, 255, 255, 255}},
      {AV_PIX_FMT_MONOBLACK, {0x40}, {0, 0, 0, 255, 255, 255}, {0, 0, 0, 255, 255, 255}},
      {AV_PIX_FMT_PAL8, {0, 1}, {16, 32, 48, 64, 80, 96}, {16, 32, 48, 255, 255, 255}}};
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    const auto path = write_into(folder, "x.png", png_of(c.format, c.row, 2));
    EXPECT_EQ(read_picture(path).rgb, c.dropped) << c.format;
    EXPECT_EQ(read_picture(path, {.alpha_on_white = true}).rgb, c.white) << c.format;
  }
  // Alpha grows from 0 at the left to 255 at the right.
  const Image shown = read_picture(stored("webp_alpha.webp"), {.alpha_on_white = true});
  const Image colours = read_png(stored("webp_alpha.png"));
  EXPECT_EQ(shown.pixel(0, 0)[0], 255);
  EXPECT_TRUE(std::equal(shown.pixel(36, 5), shown.pixel(36, 5) + 3, colours.pixel(36, 5)));
}

// Reading and probing refuse alike.
static std::string refused_picture(const std::filesystem::path& path) {
  const std::string reading = message_of<UserError>([&] { read_picture(path); });
  EXPECT_EQ(message_of<UserError>([&] { probe_picture(path); }), reading);
  expect_has(reading, path.string() + ": ");
  return reading;
}

TEST(OddPictures, OthersAreRefusedByName) {
  const TemporaryFolder folder;
  expect_has(refused_picture(stored("cmyk.jpg")), "is a CMYK JPEG");
  expect_has(refused_picture(stored("animated.webp")), "is an animated WebP");
  expect_has(refused_picture(stored("animated.png")), "is an animated PNG");
  const std::string expected = "expected a PNG, JPEG or WebP picture";
  const auto named = [&](const std::string& bytes, const std::string& name) {
    const auto path = write_into(folder, "x.png", bytes + std::string(64, 'x'));
    expect_has(refused_picture(path), "is of the format " + name + "; " + expected);
    if (name != "GIF") expect_has(message_of<UserError>([&] { probe_media(path); }), name);
  };
  named("GIF89a", "GIF");
  named("BM", "BMP");
  named(std::string("II*\0", 4), "TIFF");
  named(std::string("\0\0\0\x18", 4) + "ftypheic", "HEIC");
  named(std::string("\0\0\0\x18", 4) + "ftypavif", "AVIF");
  named("\xff\x0a", "JPEG XL");
  named("8BPS", "Photoshop");
  named("%PDF", "PDF");
  expect_has(refused_picture(write_into(folder, "x.jpg", "a letter")), "is no picture; " + expected);
  std::string deep = read_file(stored("jpeg_420.jpg"));
  deep[deep.find("\xff\xc0") + 4] = 12;
  expect_has(refused_picture(write_into(folder, "x.jpg", deep)), "is a 12-bit JPEG");
}

TEST(OddPictures, WhatIsNoFileIsRefused) {
  const TemporaryFolder folder;
  expect_has(refused_picture(write_into(folder, "empty.jpg", "")), "is empty");
  expect_has(refused_picture(folder.path() / "gone.jpg"), "there is no such file");
  expect_has(refused_picture(folder.path()), "is a folder");
  expect_has(refused_picture("/dev/null"), "is not a regular file");
  expect_has(refused_picture("http://localhost/x.png"), "is a URL; only local files are read");
}

TEST(OddPictures, TruncatedOnesAreRefused) {
  const TemporaryFolder folder;
  for (const std::string name : {"jpeg_420.jpg", "jpeg_444_progressive.jpg", "webp_lossy.webp", "noise.png"}) {
    const std::string bytes = read_file(stored(name));
    for (const std::size_t kept : {bytes.size() - 1, bytes.size() - 2, bytes.size() / 2, std::size_t{20}})
      expect_has(refused_picture(write_into(folder, name, bytes.substr(0, kept))), "is truncated");
  }
}

TEST(OddPictures, RandomDamageNeverCrashes) {
  const TemporaryFolder folder;
  std::mt19937 random(5);
  for (const std::string name : {"jpeg_420.jpg", "jpeg_444_progressive.jpg", "webp_lossy.webp", "webp_lossless.webp"}) {
    const std::string good = read_file(stored(name));
    for (int i = 0; i < 100; ++i) {
      std::string bytes = good;
      for (std::size_t k = 0; k <= random() % 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        read_picture(write_into(folder, "x", bytes));
      } catch (const UserError&) {
      }
    }
  }
}

TEST(OddPictures, ResizedAsPillowDoes) {
  const Image noise = read_png(stored("noise.png"));  // 31 x 23
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 46}, {5, 4}, {31, 24}, {32, 23}, {93, 7}, {62, 46}, {13, 70}}) {
    const std::string name = fmt::format("noise_{}x{}.png", w, h);
    EXPECT_TRUE(resize_lanczos(noise, w, h) == read_png(stored(name))) << name;
  }
}

}  // namespace h3::test
