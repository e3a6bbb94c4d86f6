#include "media/png.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "media/ffmpeg.h"

namespace h3 {

using namespace ffmpeg;

static constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
static constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

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

// Walks the chunks, because the decoder shows what it has of a truncated file without a word.
static void check_chunks(std::string_view bytes, const std::string& where) {
  if (!bytes.starts_with(signature)) throw UserError(where, "", "", "is not a PNG file");
  std::size_t at = signature.size();
  std::string_view type;
  while (type != "IEND") {
    if (bytes.size() - at < 12 || big_endian(bytes, at) > bytes.size() - at - 12)
      throw UserError(where, "", "", fmt::format("is truncated at byte {}", bytes.size()));
    type = bytes.substr(at + 4, 4);
    at += big_endian(bytes, at) + 12;
  }
}

// One row of any format that the PNG decoder gives, as RGB. `palette` is that of PAL8.
static void to_rgb(AVPixelFormat format, const std::uint8_t* in, const std::uint8_t* palette, int width,
                   std::uint8_t* out, const std::string& where) {
  const auto take = [&](int x, int r, int g, int b) {
    out[3 * x] = in[r];
    out[3 * x + 1] = in[g];
    out[3 * x + 2] = in[b];
  };
  for (int x = 0; x < width; ++x) {
    switch (format) {
      case AV_PIX_FMT_RGB24:
        take(x, 3 * x, 3 * x + 1, 3 * x + 2);
        break;
      case AV_PIX_FMT_RGBA:
        take(x, 4 * x, 4 * x + 1, 4 * x + 2);
        break;
      case AV_PIX_FMT_RGB48BE:
        take(x, 6 * x, 6 * x + 2, 6 * x + 4);
        break;
      case AV_PIX_FMT_RGBA64BE:
        take(x, 8 * x, 8 * x + 2, 8 * x + 4);
        break;
      case AV_PIX_FMT_GRAY8:
        take(x, x, x, x);
        break;
      case AV_PIX_FMT_YA8:
        take(x, 2 * x, 2 * x, 2 * x);
        break;
      case AV_PIX_FMT_GRAY16BE:
        take(x, 2 * x, 2 * x, 2 * x);
        break;
      case AV_PIX_FMT_YA16BE:
        take(x, 4 * x, 4 * x, 4 * x);
        break;
      case AV_PIX_FMT_MONOBLACK:
        std::memset(out + 3 * x, in[x / 8] >> (7 - x % 8) & 1 ? 255 : 0, 3);
        break;
      case AV_PIX_FMT_PAL8: {
        std::uint32_t argb = 0;
        std::memcpy(&argb, palette + 4 * in[x], 4);
        for (int c = 0; c < 3; ++c) out[3 * x + c] = static_cast<std::uint8_t>(argb >> (16 - 8 * c));
        break;
      }
      default:
        throw UserError(where, "", "", "is a PNG of a kind that is not read");
    }
  }
}

Image decode_png(std::string_view bytes, const std::string& where) {
  quiet_log();
  check_chunks(bytes, where);
  const AVCodec* decoder = avcodec_find_decoder(AV_CODEC_ID_PNG);
  check_read(decoder ? 0 : AVERROR_DECODER_NOT_FOUND, where, "avcodec_find_decoder");
  const Codec codec(avcodec_alloc_context3(decoder));
  codec->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  codec->max_pixels = most_pixels;
  codec->thread_count = 1;
  check_read(avcodec_open2(codec.get(), decoder, nullptr), where, "avcodec_open2");
  const Packet packet = new_packet();
  check_read(av_new_packet(packet.get(), static_cast<int>(bytes.size())), where, "av_new_packet");
  std::memcpy(packet->data, bytes.data(), bytes.size());
  const Frame frame = new_frame();
  check_read(avcodec_send_packet(codec.get(), packet.get()), where, "avcodec_send_packet");
  check_read(avcodec_send_packet(codec.get(), nullptr), where, "avcodec_send_packet");
  check_read(avcodec_receive_frame(codec.get(), frame.get()), where, "avcodec_receive_frame");
  Image image(frame->width, frame->height);
  for (int y = 0; y < image.height; ++y)
    to_rgb(static_cast<AVPixelFormat>(frame->format),
           frame->data[0] + static_cast<std::ptrdiff_t>(y) * frame->linesize[0], frame->data[1], image.width,
           image.pixel(0, y), where);
  return image;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomically(path, encode_png(image));
}

Image read_png(const std::filesystem::path& path) {
  return decode_png(read_file(path), path.string());
}

}  // namespace h3
