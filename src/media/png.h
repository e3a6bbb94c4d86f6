// PNG files, written and read as 8-bit RGB through libavcodec. Reading takes every PNG: grey is replicated, palettes
// looked up, 16-bit samples cut to their high byte, alpha dropped or laid over white.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "media/orientation.h"
#include "media/read_options.h"

namespace h3 {

// The bytes of a PNG file. The image has at least one pixel.
std::string encode_png(const Image& image);

inline constexpr std::string_view png_signature = "\x89PNG\r\n\x1a\n";
// The headers; reads on to the end chunk. `where` opens the message of the UserError thrown for what is no PNG, is
// truncated, damaged, an animation or absurdly large.
PictureHeader png_header(std::string_view bytes, const std::string& where);
// The picture as stored: its orientation is not applied. Throws as png_header().
Image decode_png(std::string_view bytes, const std::string& where, const ReadOptions& options = {});

// Writes under a temporary name, then renames. Throws SceneError naming the file.
void write_png(const std::filesystem::path& path, const Image& image);
Image read_png(const std::filesystem::path& path);

}  // namespace h3
