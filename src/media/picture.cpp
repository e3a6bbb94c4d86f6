#include "media/picture.h"

#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "media/jpeg.h"
#include "media/local_file.h"
#include "media/png.h"
#include "media/webp.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

// The name of a picture format by the first bytes of a file; "" for anything else.
std::string format_of(std::string_view head) {
  const auto brand = [&](std::string_view name) { return head.size() >= 12 && head.substr(8, 4) == name; };
  if (head.starts_with(png_signature)) return "PNG";
  if (head.starts_with(jpeg_signature)) return "JPEG";
  if (is_webp(head)) return "WebP";
  if (head.starts_with("GIF8")) return "GIF";
  if (head.starts_with("BM")) return "BMP";
  if (head.starts_with(std::string_view("II*\0", 4)) || head.starts_with(std::string_view("MM\0*", 4))) return "TIFF";
  if (head.size() >= 12 && head.substr(4, 4) == "ftyp") {
    if (brand("avif") || brand("avis")) return "AVIF";
    for (const std::string_view heif : {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"})
      if (brand(heif)) return "HEIC";
  }
  if (head.starts_with("\xff\x0a") || head.starts_with(std::string_view("\0\0\0\x0cJXL ", 8))) return "JPEG XL";
  if (head.starts_with(std::string_view("\0\0\0\x0cjP  ", 8))) return "JPEG 2000";
  if (head.starts_with("8BPS")) return "Photoshop";
  if (head.starts_with("%PDF")) return "PDF";
  if (head.starts_with("<svg")) return "SVG";
  return "";
}

std::string format_of_file(const fs::path& path) {
  return format_of(head_of_local_file(path, 16));
}

// A file of a format that is read, in memory.
struct PictureFile {
  std::string format, bytes, where;

  explicit PictureFile(const fs::path& path) : format(format_of_file(path)), where(path.string()) {
    if (format != "PNG" && format != "JPEG" && format != "WebP")
      throw UserError(where, "", "",
                      fmt::format("is {}; expected a PNG, JPEG or WebP picture",
                                  format.empty() ? "no picture" : "of the format " + format));
    bytes = read_file(path);
  }

  PictureHeader header() const {
    if (format == "PNG") return png_header(bytes, where);
    if (format == "JPEG") return jpeg_header(bytes, where);
    return webp_header(bytes, where);
  }
  Image decode(const ReadOptions& options) const {
    if (format == "PNG") return decode_png(bytes, where, options);
    if (format == "JPEG") return decode_jpeg(bytes, where);
    return decode_webp(bytes, where, options);
  }
};

}  // namespace

bool is_picture(const fs::path& path) {
  const std::string format = format_of_file(path);
  return !format.empty() && format != "GIF";
}

Image read_picture(const fs::path& path, const ReadOptions& options) {
  const PictureFile file(path);
  return upright(file.decode(options), file.header().orientation);
}

PictureFacts probe_picture(const fs::path& path) {
  const PictureFile file(path);
  const PictureHeader h = file.header();
  const bool swap = swaps_sides(h.orientation);
  return {file.format, swap ? h.height : h.width, swap ? h.width : h.height};
}

}  // namespace h3
