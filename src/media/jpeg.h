// JPEG files, read as libjpeg and so Pillow reads them: chroma scaled up by its triangle filter, its fixed-point
// colours, full-range BT.601. FFmpeg's inverse cosine transform rounds some samples to a neighbouring level.
#pragma once

#include <string>
#include <string_view>

#include "media/orientation.h"

namespace h3 {

inline constexpr std::string_view jpeg_signature = "\xff\xd8\xff";

// The headers of a file that begins with the signature; reads on to its end marker. `where` opens the message of the
// UserError thrown for what is truncated, damaged, CMYK, lossless, arithmetic-coded or of more than 8 bits.
PictureHeader jpeg_header(std::string_view bytes, const std::string& where);

// The picture as stored: its orientation is not applied.
Image decode_jpeg(std::string_view bytes, const std::string& where);

}  // namespace h3
