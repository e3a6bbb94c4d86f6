// Pictures that people have, as 8-bit RGB, upright: PNG, JPEG and WebP by what the file holds, not by its name, with
// the pixels that the references get from Pillow. Other kinds are refused by name.
#pragma once

#include <filesystem>
#include <string>

#include "media/image.h"
#include "media/read_options.h"

namespace h3 {

struct PictureFacts {
  std::string format;         // "PNG", "JPEG", "WebP"
  int width = 0, height = 0;  // upright
};

// Grey is replicated, palettes are looked up, 16-bit samples cut to their high byte, alpha is dropped or laid over
// white, and EXIF orientation is applied. Throws UserError naming the file for what is damaged, truncated, animated,
// CMYK or of another format.
Image read_picture(const std::filesystem::path& path, const ReadOptions& options = {});

// The same from the headers alone, as strict as they allow.
PictureFacts probe_picture(const std::filesystem::path& path);

// Whether the file begins like a picture of any format known here, read or refused; a GIF counts as a clip. Throws
// UserError as head_of_local_file().
bool is_picture(const std::filesystem::path& path);

}  // namespace h3
