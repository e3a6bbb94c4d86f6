// WebP pictures, read with the pixels that libwebp gives and so Pillow: chroma scaled up by its 9-3-3-1 filter, its
// fixed-point BT.601 colours. Lossless ones are RGB as they are.
#pragma once

#include <string>
#include <string_view>

#include "media/orientation.h"
#include "media/read_options.h"

namespace h3 {

bool is_webp(std::string_view bytes);

// The headers of a WebP file. `where` opens the message of the UserError thrown for what is truncated, damaged or an
// animation.
PictureHeader webp_header(std::string_view bytes, const std::string& where);

// The picture as stored: its orientation is not applied.
Image decode_webp(std::string_view bytes, const std::string& where, const ReadOptions& options = {});

}  // namespace h3
