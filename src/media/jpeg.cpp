#include "media/jpeg.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "media/still.h"

namespace h3 {

using namespace ffmpeg;

namespace {

constexpr std::uint8_t end_of_image = 0xd9, start_of_scan = 0xda, exif_segment = 0xe1;

bool is_frame_header(std::uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

bool stands_alone(std::uint8_t marker) {
  return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

// Walks the markers, because the decoder shows what it has of a truncated file without a word.
class JpegWalk {
 public:
  JpegWalk(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PictureHeader header() {
    at_ = 2;
    for (std::uint8_t marker = next_marker(); marker != end_of_image; marker = next_marker()) {
      if (stands_alone(marker)) continue;
      const std::string_view segment = take_segment();
      if (is_frame_header(marker)) read_frame_header(marker, segment);
      if (marker == exif_segment && segment.starts_with(std::string_view("Exif\0\0", 6)))
        header_.orientation = exif_orientation(segment.substr(6));
      if (marker == start_of_scan) skip_coded_data();
    }
    if (header_.width == 0) throw UserError(where_, "", "", "is a JPEG file without a picture");
    return header_;
  }

 private:
  std::uint8_t byte(std::size_t at) const {
    if (at >= bytes_.size()) throw UserError(where_, "", "", fmt::format("is truncated at byte {}", bytes_.size()));
    return static_cast<std::uint8_t>(bytes_[at]);
  }
  std::size_t two_bytes(std::size_t at) const { return static_cast<std::size_t>(byte(at) << 8 | byte(at + 1)); }

  std::uint8_t next_marker() {
    if (byte(at_) != 0xff) throw UserError(where_, "", "", fmt::format("is damaged: no JPEG marker at byte {}", at_));
    while (byte(at_) == 0xff) ++at_;
    return byte(at_++);
  }

  std::string_view take_segment() {
    const std::size_t length = two_bytes(at_);
    if (length < 2) throw UserError(where_, "", "", fmt::format("is damaged: an empty JPEG segment at byte {}", at_));
    byte(at_ + length - 1);
    const std::string_view segment = bytes_.substr(at_ + 2, length - 2);
    at_ += length;
    return segment;
  }

  void skip_coded_data() {
    const auto is_data = [&](std::uint8_t after) { return after == 0 || (after >= 0xd0 && after <= 0xd7); };
    while (byte(at_) != 0xff || is_data(byte(at_ + 1))) ++at_;
  }

  void read_frame_header(std::uint8_t marker, std::string_view segment) {
    const auto refuse = [&](const std::string& kind) {
      throw UserError(where_, "", "", "is a " + kind + " JPEG; expected baseline or progressive, 8 bits, grey or RGB");
    };
    if (segment.size() < 6) throw UserError(where_, "", "", "is damaged: a short JPEG frame header");
    const auto value = [&](std::size_t i) { return static_cast<std::uint8_t>(segment[i]); };
    if (marker > 0xc2) refuse(marker >= 0xc9 && marker <= 0xca ? "arithmetic-coded" : "lossless or hierarchical");
    if (value(0) != 8) refuse(fmt::format("{}-bit", value(0)));
    if (value(5) == 4) refuse("CMYK");
    if (value(5) != 1 && value(5) != 3) refuse(fmt::format("{}-component", value(5)));
    header_.height = value(1) << 8 | value(2);
    header_.width = value(3) << 8 | value(4);
    check_picture_size(header_.width, header_.height, where_);
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  PictureHeader header_;
};

// One plane of samples, with the edge samples repeated beyond it.
struct Plane {
  int width = 0, height = 0;
  std::vector<std::uint8_t> samples;

  Plane(int w, int h) : width(w), height(h), samples(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {}
  std::uint8_t* row(int y) {
    return samples.data() + static_cast<std::ptrdiff_t>(std::clamp(y, 0, height - 1)) * width;
  }
};

Plane plane_of(const AVFrame& frame, int index, int width, int height) {
  Plane plane(width, height);
  for (int y = 0; y < height; ++y)
    std::copy_n(frame.data[index] + static_cast<std::ptrdiff_t>(y) * frame.linesize[index], width, plane.row(y));
  return plane;
}

// Twice as wide: each sample weighs 3, the nearer neighbour 1. `sums` holds the samples times `scale`; the two biases
// alternate so that rounding has no direction. The outermost samples stand alone.
void widen(const std::vector<int>& sums, int scale, int even_bias, int odd_bias, std::uint8_t* out) {
  const auto n = static_cast<int>(sums.size());
  const auto at = [&](int i) { return sums[static_cast<std::size_t>(std::clamp(i, 0, n - 1))]; };
  for (int i = 0; i < n; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * at(i) + at(i - 1) + even_bias) / (4 * scale));
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * at(i) + at(i + 1) + odd_bias) / (4 * scale));
  }
}

// Chroma at full size. libjpeg repeats samples where a row has no more than two of them, and where four share one.
Plane full_size(Plane chroma, int across, int down, int width, int height) {
  const bool triangle_across = across == 2 && chroma.width > 2;
  const bool triangle_down = down == 2 && (across == 1 || triangle_across);
  Plane full(width, height);
  std::vector<int> sums(static_cast<std::size_t>(chroma.width));
  std::vector<std::uint8_t> wide(static_cast<std::size_t>(chroma.width * across));
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* near = chroma.row(y / down);
    const std::uint8_t* far = chroma.row(y / down + (y % 2 == 0 ? -1 : 1));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = triangle_down ? 3 * near[i] + far[i] : near[i];
    if (triangle_across) {
      widen(sums, triangle_down ? 4 : 1, triangle_down ? 8 : 1, triangle_down ? 7 : 2, wide.data());
    } else {
      const auto level = [&](int sum) { return triangle_down ? (sum + (y % 2 == 0 ? 1 : 2)) / 4 : sum; };
      for (std::size_t i = 0; i < wide.size(); ++i)
        wide[i] = static_cast<std::uint8_t>(level(sums[i / static_cast<std::size_t>(across)]));
    }
    std::copy_n(wide.data(), width, full.row(y));
  }
  return full;
}

// Colours in 16-bit fixed point; the halves that round stand where libjpeg adds them.
void to_rgb(int y, int cb, int cr, std::uint8_t* rgb) {
  constexpr int half = 1 << 15;
  const auto level = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); };
  rgb[0] = level(y + ((91881 * cr + half) >> 16));                // 1.402
  rgb[1] = level(y + ((-22554 * cb - 46802 * cr + half) >> 16));  // 0.34414, 0.71414
  rgb[2] = level(y + ((116130 * cb + half) >> 16));               // 1.772
}

Image image_of(const AVFrame& frame, const std::string& where) {
  const int w = frame.width, h = frame.height;
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const AVPixFmtDescriptor* layout = av_pix_fmt_desc_get(format);
  const bool known = layout && layout->comp[0].depth == 8 &&
                     (format == AV_PIX_FMT_GRAY8 || layout->nb_components == 3) &&
                     (layout->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL)) == 0 &&
                     (format == AV_PIX_FMT_GRAY8 || (layout->flags & AV_PIX_FMT_FLAG_PLANAR) != 0);
  if (!known) throw UserError(where, "", "", "is a JPEG of a kind that is not read");
  Image image(w, h);
  Plane y = plane_of(frame, 0, w, h);
  if (format == AV_PIX_FMT_GRAY8) {
    for (std::size_t i = 0; i < y.samples.size(); ++i) std::fill_n(image.rgb.data() + 3 * i, 3, y.samples[i]);
    return image;
  }
  if ((layout->flags & AV_PIX_FMT_FLAG_RGB) != 0) {
    const Plane blue = plane_of(frame, 1, w, h), red = plane_of(frame, 2, w, h);
    for (std::size_t i = 0; i < y.samples.size(); ++i) {
      image.rgb[3 * i] = red.samples[i];
      image.rgb[3 * i + 1] = y.samples[i];
      image.rgb[3 * i + 2] = blue.samples[i];
    }
    return image;
  }
  const int across = 1 << layout->log2_chroma_w, down = 1 << layout->log2_chroma_h;
  const auto chroma = [&](int index) {
    return full_size(plane_of(frame, index, (w + across - 1) / across, (h + down - 1) / down), across, down, w, h);
  };
  const Plane cb = chroma(1), cr = chroma(2);
  for (std::size_t i = 0; i < y.samples.size(); ++i)
    to_rgb(y.samples[i], cb.samples[i] - 128, cr.samples[i] - 128, image.rgb.data() + 3 * i);
  return image;
}

}  // namespace

PictureHeader jpeg_header(std::string_view bytes, const std::string& where) {
  return JpegWalk(bytes, where).header();
}

Image decode_jpeg(std::string_view bytes, const std::string& where) {
  const PictureHeader header = jpeg_header(bytes, where);
  const Frame frame = decode_still(AV_CODEC_ID_MJPEG, bytes, where, FF_IDCT_INT);
  Image image = image_of(*frame, where);
  if (image.width != header.width || image.height != header.height)
    throw UserError(where, "", "", "is damaged: the picture has another size than its header");
  return image;
}

}  // namespace h3
