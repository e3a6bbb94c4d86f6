#include "media/webp.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "media/still.h"

namespace h3 {

using namespace ffmpeg;

bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}

namespace {

std::uint32_t little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Size from the head of a VP8 key frame, a VP8L stream or an extended header; none of another chunk.
void read_size(std::string_view type, std::string_view chunk, PictureHeader& header) {
  if (type == "VP8 " && chunk.size() >= 10) {
    header.width = static_cast<int>(little_endian(chunk, 6, 2) & 0x3fff);
    header.height = static_cast<int>(little_endian(chunk, 8, 2) & 0x3fff);
  } else if (type == "VP8L" && chunk.size() >= 5) {
    const std::uint32_t bits = little_endian(chunk, 1, 4);
    header.width = static_cast<int>(bits & 0x3fff) + 1;
    header.height = static_cast<int>(bits >> 14 & 0x3fff) + 1;
  } else if (type == "VP8X" && chunk.size() >= 10) {
    header.width = static_cast<int>(little_endian(chunk, 4, 3)) + 1;
    header.height = static_cast<int>(little_endian(chunk, 7, 3)) + 1;
  }
}

// Colours in 14-bit fixed point, as libwebp rounds them.
void to_rgb(int y, int u, int v, std::uint8_t* rgb) {
  const auto times = [](int value, int factor) { return value * factor >> 8; };
  const auto level = [](int value) { return static_cast<std::uint8_t>(std::clamp(value >> 6, 0, 255)); };
  const int luma = times(y, 19077);
  rgb[0] = level(luma + times(v, 26149) - 14234);
  rgb[1] = level(luma - times(u, 6419) - times(v, 13320) + 8708);
  rgb[2] = level(luma + times(u, 33050) - 17685);
}

// A chroma value at full size: 9 of the nearest sample, 3 of each of the next, 1 of the one across, halved in the order
// that libwebp halves them. At an edge of the picture the nearest row or column stands for the missing one.
class ChromaPlane {
 public:
  ChromaPlane(const AVFrame& frame, int index)
      : data_(frame.data[index]),
        stride_(frame.linesize[index]),
        width_((frame.width + 1) / 2),
        height_((frame.height + 1) / 2) {}

  int at(int x, int y) const {
    const int column = x / 2, row = y / 2;
    const int beside = column + (x % 2 == 0 ? -1 : 1), across = row + (y % 2 == 0 ? -1 : 1);
    const int near = sample(column, row), far = sample(column, across);
    if (beside < 0 || beside >= width_) return (3 * near + far + 2) >> 2;
    const int near_beside = sample(beside, row), far_beside = sample(beside, across);
    const int sum = near + far + near_beside + far_beside + 8;
    return (near + ((sum + 2 * (near_beside + far)) >> 3)) >> 1;
  }

 private:
  int sample(int column, int row) const {
    return data_[static_cast<std::ptrdiff_t>(std::clamp(row, 0, height_ - 1)) * stride_ + column];
  }
  const std::uint8_t* data_;
  std::ptrdiff_t stride_;
  int width_, height_;
};

Image lossy_image(const AVFrame& frame, const ReadOptions& options) {
  Image image(frame.width, frame.height);
  const ChromaPlane u(frame, 1), v(frame, 2);
  const bool has_alpha = frame.format == AV_PIX_FMT_YUVA420P;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* luma = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    const std::uint8_t* alpha =
        has_alpha ? frame.data[3] + static_cast<std::ptrdiff_t>(y) * frame.linesize[3] : nullptr;
    for (int x = 0; x < image.width; ++x) {
      std::uint8_t* rgb = image.pixel(x, y);
      to_rgb(luma[x], u.at(x, y), v.at(x, y), rgb);
      for (int c = 0; alpha && c < 3; ++c) rgb[c] = without_alpha(rgb[c], alpha[x], options);
    }
  }
  return image;
}

Image lossless_image(const AVFrame& frame, const ReadOptions& options) {
  Image image(frame.width, frame.height);
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* argb = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    for (int x = 0; x < image.width; ++x, argb += 4)
      for (int c = 0; c < 3; ++c) image.pixel(x, y)[c] = without_alpha(argb[1 + c], argb[0], options);
  }
  return image;
}

}  // namespace

PictureHeader webp_header(std::string_view bytes, const std::string& where) {
  if (!is_webp(bytes)) throw UserError(where, "", "", "is not a WebP file");
  constexpr std::uint8_t animation_flag = 0x02;
  PictureHeader header;
  const std::size_t size = little_endian(bytes, 4, 4);
  if (size > bytes.size() - 8)
    throw UserError(where, "", "", fmt::format("is truncated: {} bytes of {}", bytes.size(), size + 8));
  std::string_view rest = bytes.substr(12, size < 4 ? 0 : size - 4);
  while (rest.size() >= 8) {
    const std::string_view type = rest.substr(0, 4);
    const std::size_t length = little_endian(rest, 4, 4);
    if (length > rest.size() - 8) throw UserError(where, "", "", "is truncated");
    const std::string_view chunk = rest.substr(8, length);
    const bool extended = type == "VP8X" && !chunk.empty();
    if (type == "ANMF" || (extended && (static_cast<std::uint8_t>(chunk[0]) & animation_flag) != 0))
      throw UserError(where, "", "", "is an animated WebP; expected a single picture");
    if (header.width == 0) read_size(type, chunk, header);
    if (type == "EXIF")
      header.orientation = exif_orientation(chunk.substr(chunk.starts_with(std::string_view("Exif\0\0", 6)) ? 6 : 0));
    rest.remove_prefix(std::min(rest.size(), 8 + length + length % 2));
  }
  check_picture_size(header.width, header.height, where);
  return header;
}

Image decode_webp(std::string_view bytes, const std::string& where, const ReadOptions& options) {
  const PictureHeader header = webp_header(bytes, where);
  const Frame frame = decode_still(AV_CODEC_ID_WEBP, bytes, where);
  if (frame->width != header.width || frame->height != header.height)
    throw UserError(where, "", "", "is damaged: the picture has another size than its header");
  if (frame->format == AV_PIX_FMT_YUV420P || frame->format == AV_PIX_FMT_YUVA420P) return lossy_image(*frame, options);
  if (frame->format == AV_PIX_FMT_ARGB) return lossless_image(*frame, options);
  throw UserError(where, "", "", "is a WebP of a kind that is not read");
}

}  // namespace h3
