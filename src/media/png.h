// PNG files, written and read as 8-bit RGB through libavcodec. Reading takes every PNG: grey is replicated, palettes
// looked up, 16-bit samples cut to their high byte, alpha dropped.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "media/image.h"

namespace h3 {

// The bytes of a PNG file. The image has at least one pixel.
std::string encode_png(const Image& image);
// `where` opens the message of the UserError thrown for what is no PNG, is truncated, damaged or absurdly large.
Image decode_png(std::string_view bytes, const std::string& where);

// Writes under a temporary name, then renames. Throws SceneError naming the file.
void write_png(const std::filesystem::path& path, const Image& image);
Image read_png(const std::filesystem::path& path);

}  // namespace h3
