#include "media/png.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "media/still.h"

namespace h3 {

using namespace ffmpeg;

std::string encode_png(const Image& image) {
  quiet_log();
  CHECK_EQ(image.rgb.size(), static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  const std::string what = "PNG";
  const AVCodec* encoder = avcodec_find_encoder(AV_CODEC_ID_PNG);
  check_write(encoder ? 0 : AVERROR_ENCODER_NOT_FOUND, what, "avcodec_find_encoder");
  const Codec codec(avcodec_alloc_context3(encoder));
  codec->width = image.width;
  codec->height = image.height;
  codec->pix_fmt = AV_PIX_FMT_RGB24;
  codec->time_base = {1, 1};
  codec->thread_count = 1;
  check_write(avcodec_open2(codec.get(), encoder, nullptr), what, "avcodec_open2");
  const Frame frame = new_frame();
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = image.width;
  frame->height = image.height;
  check_write(av_frame_get_buffer(frame.get(), 0), what, "av_frame_get_buffer");
  const std::size_t row = static_cast<std::size_t>(image.width) * 3;
  for (int y = 0; y < image.height; ++y)
    std::memcpy(frame->data[0] + static_cast<std::ptrdiff_t>(y) * frame->linesize[0], image.pixel(0, y), row);
  const Packet packet = new_packet();
  check_write(avcodec_send_frame(codec.get(), frame.get()), what, "avcodec_send_frame");
  check_write(avcodec_send_frame(codec.get(), nullptr), what, "avcodec_send_frame");
  check_write(avcodec_receive_packet(codec.get(), packet.get()), what, "avcodec_receive_packet");
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

static std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Walks the chunks to the end, because the decoder shows what it has of a truncated file without a word.
PictureHeader png_header(std::string_view bytes, const std::string& where) {
  if (!bytes.starts_with(png_signature)) throw UserError(where, "", "", "is not a PNG file");
  PictureHeader header;
  std::size_t at = png_signature.size();
  std::string_view type;
  while (type != "IEND") {
    if (bytes.size() - at < 12 || big_endian(bytes, at) > bytes.size() - at - 12)
      throw UserError(where, "", "", fmt::format("is truncated at byte {}", bytes.size()));
    const std::string_view chunk = bytes.substr(at + 8, big_endian(bytes, at));
    type = bytes.substr(at + 4, 4);
    if (type == "IHDR" && chunk.size() >= 8) {
      header.width = static_cast<int>(big_endian(chunk, 0) & 0x7fffffff);
      header.height = static_cast<int>(big_endian(chunk, 4) & 0x7fffffff);
    }
    if (type == "eXIf") header.orientation = exif_orientation(chunk);
    if (type == "acTL" && chunk.size() >= 4 && big_endian(chunk, 0) > 1)
      throw UserError(where, "", "", "is an animated PNG; expected a single picture");
    at += chunk.size() + 12;
  }
  check_picture_size(header.width, header.height, where);
  return header;
}

// Where a pixel's bytes lie in the formats that the PNG decoder gives; of 16-bit samples the high byte.
struct PixelLayout {
  AVPixelFormat format;
  int bytes, red, green, blue, alpha;  // alpha -1: none
};
static constexpr std::array<PixelLayout, 8> layouts{{{AV_PIX_FMT_RGB24, 3, 0, 1, 2, -1},
                                                     {AV_PIX_FMT_RGBA, 4, 0, 1, 2, 3},
                                                     {AV_PIX_FMT_RGB48BE, 6, 0, 2, 4, -1},
                                                     {AV_PIX_FMT_RGBA64BE, 8, 0, 2, 4, 6},
                                                     {AV_PIX_FMT_GRAY8, 1, 0, 0, 0, -1},
                                                     {AV_PIX_FMT_YA8, 2, 0, 0, 0, 1},
                                                     {AV_PIX_FMT_GRAY16BE, 2, 0, 0, 0, -1},
                                                     {AV_PIX_FMT_YA16BE, 4, 0, 0, 0, 2}}};

static void row_to_rgb(const AVFrame& frame, const std::uint8_t* in, std::uint8_t* out, const ReadOptions& options,
                       const std::string& where) {
  const auto put = [&](std::uint8_t red, std::uint8_t green, std::uint8_t blue, std::uint8_t alpha) {
    for (const std::uint8_t value : {red, green, blue}) *out++ = without_alpha(value, alpha, options);
  };
  if (frame.format == AV_PIX_FMT_MONOBLACK) {
    for (int x = 0; x < frame.width; ++x) {
      const auto level = static_cast<std::uint8_t>((in[x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0);
      put(level, level, level, 255);
    }
  } else if (frame.format == AV_PIX_FMT_PAL8) {
    for (int x = 0; x < frame.width; ++x) {
      std::uint32_t argb = 0;
      std::memcpy(&argb, frame.data[1] + std::ptrdiff_t{4} * in[x], 4);
      const auto byte = [&](int shift) { return static_cast<std::uint8_t>(argb >> shift); };
      put(byte(16), byte(8), byte(0), byte(24));
    }
  } else {
    const auto layout =
        std::find_if(layouts.begin(), layouts.end(), [&](const PixelLayout& l) { return l.format == frame.format; });
    if (layout == layouts.end()) throw UserError(where, "", "", "is a PNG of a kind that is not read");
    for (int x = 0; x < frame.width; ++x, in += layout->bytes)
      put(in[layout->red], in[layout->green], in[layout->blue],
          layout->alpha < 0 ? std::uint8_t{255} : in[layout->alpha]);
  }
}

Image decode_png(std::string_view bytes, const std::string& where, const ReadOptions& options) {
  png_header(bytes, where);
  const Frame frame = decode_still(AV_CODEC_ID_PNG, bytes, where);
  Image image(frame->width, frame->height);
  for (int y = 0; y < image.height; ++y)
    row_to_rgb(*frame, frame->data[0] + static_cast<std::ptrdiff_t>(y) * frame->linesize[0], image.pixel(0, y), options,
               where);
  return image;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomically(path, encode_png(image));
}

Image read_png(const std::filesystem::path& path) {
  return decode_png(read_file(path), path.string());
}

}  // namespace h3
