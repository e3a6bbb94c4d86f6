#include "media/display.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace h3::ffmpeg {

// The matrix maps stored (x, y) to shown (a x + c y, b x + d y), in 16-bit fixed point.
static Orientation orientation_of(const AVStream& stream, const std::string& where) {
  const std::span<const std::uint8_t> data = side_data(stream, AV_PKT_DATA_DISPLAYMATRIX);
  std::array<std::int32_t, 9> matrix{};
  if (data.size() < sizeof matrix) return Orientation::as_stored;
  std::memcpy(matrix.data(), data.data(), sizeof matrix);
  const std::int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  using O = Orientation;
  if (b == 0 && c == 0 && a != 0 && d != 0)
    return a > 0 ? (d > 0 ? O::as_stored : O::flip) : (d > 0 ? O::mirror : O::half_turn);
  if (a == 0 && d == 0 && b != 0 && c != 0)
    return c > 0 ? (b > 0 ? O::transpose : O::turn_left) : (b > 0 ? O::turn_right : O::transverse);
  throw UserError(where, "", "", "is turned by an angle that is no quarter turn");
}

DisplaySize display_of(const AVStream& stream, const std::string& where) {
  const AVCodecParameters& p = *stream.codecpar;
  if (p.width <= 0 || p.height <= 0) throw UserError(where, "", "", "holds a video of no size");
  DisplaySize display{p.width, p.height, orientation_of(stream, where)};
  const AVRational stated = stream.sample_aspect_ratio.num > 0 ? stream.sample_aspect_ratio : p.sample_aspect_ratio;
  if (stated.num > 0 && stated.den > 0)
    display.width = static_cast<int>(std::max(1L, std::lround(p.width * av_q2d(stated))));
  if (swaps_sides(display.orientation)) std::swap(display.width, display.height);
  return display;
}

}  // namespace h3::ffmpeg
