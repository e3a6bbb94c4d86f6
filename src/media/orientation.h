// How a stored picture lies against the one to be seen: the eight orientations of EXIF, which are also the quarter
// turns and mirrorings that a clip's display matrix states.
#pragma once

#include <cstdint>
#include <string_view>

#include "media/image.h"

namespace h3 {

// Numbered as in EXIF; named by what makes the stored picture upright.
enum class Orientation : std::uint8_t {
  as_stored = 1,
  mirror = 2,  // left to right
  half_turn = 3,
  flip = 4,  // top to bottom
  transpose = 5,
  turn_right = 6,  // by a quarter, clockwise
  transverse = 7,
  turn_left = 8
};

// Whether width and height change places.
bool swaps_sides(Orientation orientation);

Image upright(const Image& image, Orientation orientation);

// What a picture's headers say of it: its size as stored, and how it lies.
struct PictureHeader {
  int width = 0, height = 0;
  Orientation orientation = Orientation::as_stored;
};

// The orientation that an EXIF block (from its "II" or "MM" on) states; as_stored where it states none or is damaged,
// for which no reader refuses a picture.
Orientation exif_orientation(std::string_view exif);

}  // namespace h3
