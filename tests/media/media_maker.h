// Writes small clips and sounds of odd kinds with FFmpeg's encoders and muxers, for the tests of the readers: any frame
// times, pixel formats, colour tags, rotations, rates, channel layouts and start offsets.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "media/ffmpeg.h"
#include "media/sound.h"

namespace h3::test {

// The components of a pixel (Y, U, V, A or as the pixel format has them) of frame i at x, y in [0, 1).
using Painter = std::function<std::array<int, 4>(int frame, double x, double y)>;

// Grey whose luma tells the frame's number, and the number that a decoded grey tells.
std::array<int, 4> numbered(int frame, double x, double y);
int number_of(std::uint8_t grey);

struct MadeVideo {
  std::string codec = "ffv1";
  AVPixelFormat format = AV_PIX_FMT_YUV420P;
  int width = 32, height = 16;
  std::vector<std::int64_t> ticks = {};  // when each frame is shown
  std::int64_t last_hold = 1;            // ticks that the last one is shown for
  AVRational tick{1, 24};
  AVRational pixel_aspect{0, 1};
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
  std::optional<std::array<std::int32_t, 4>> turn = std::nullopt;  // a, b, c, d of the display matrix, in whole units
  Painter paint = numbered;
};

struct MadeSound {
  std::string codec = "pcm_s16le";
  std::string layout = {};  // FFmpeg's name; empty: the usual one of the channels
  Sound sound = {};
  double start = 0;  // seconds
};

// The format follows the file's name. Throws with FFmpeg's words where that fails.
void make_media(const std::filesystem::path& path, const std::optional<MadeVideo>& video,
                const std::optional<MadeSound>& sound = std::nullopt);

// 0, 1, 2, ...
std::vector<std::int64_t> ticks_up_to(std::int64_t count);

}  // namespace h3::test
