// One still picture through a decoder of FFmpeg: the whole file as one packet, one frame back. Only the .cpp files of
// this room include this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "media/ffmpeg.h"
#include "media/read_options.h"

namespace h3::ffmpeg {

// A picture larger than this is refused.
inline constexpr std::int64_t most_picture_pixels = std::int64_t{1} << 28;

// Throws UserError, which `where` opens, where the size is none or too large.
void check_picture_size(std::int64_t width, std::int64_t height, const std::string& where);

// `idct` is FF_IDCT_AUTO or another of FFmpeg's. Throws UserError for what is damaged.
Frame decode_still(AVCodecID codec, std::string_view bytes, const std::string& where, int idct = FF_IDCT_AUTO);

// A colour value with its alpha, as the options want it: as it is, or over white.
inline std::uint8_t without_alpha(std::uint8_t value, std::uint8_t alpha, const ReadOptions& options) {
  if (!options.alpha_on_white) return value;
  return static_cast<std::uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

}  // namespace h3::ffmpeg
