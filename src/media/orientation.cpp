#include "media/orientation.h"

#include <algorithm>
#include <cstddef>

namespace h3 {

bool swaps_sides(Orientation orientation) {
  return orientation >= Orientation::transpose;
}

Image upright(const Image& image, Orientation orientation) {
  using O = Orientation;
  if (orientation == O::as_stored) return image;
  const bool swap = swaps_sides(orientation);
  const bool from_right = orientation == O::mirror || orientation == O::half_turn || orientation == O::transverse ||
                          orientation == O::turn_left;
  const bool from_below = orientation == O::half_turn || orientation == O::flip || orientation == O::turn_right ||
                          orientation == O::transverse;
  Image out(swap ? image.height : image.width, swap ? image.width : image.height);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int column = swap ? y : x, row = swap ? x : y;
      std::copy_n(
          image.pixel(from_right ? image.width - 1 - column : column, from_below ? image.height - 1 - row : row), 3,
          out.pixel(x, y));
    }
  }
  return out;
}

namespace {

// Numbers of a TIFF block in its own byte order; 0 past its end.
class TiffBlock {
 public:
  explicit TiffBlock(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}
  bool is_valid() const { return (little_ || bytes_.starts_with("MM")) && number(2, 2) == 42; }
  std::size_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace

Orientation exif_orientation(std::string_view exif) {
  constexpr std::size_t orientation_tag = 0x0112, entry_bytes = 12, short_type = 3;
  const TiffBlock block(exif);
  if (!block.is_valid()) return Orientation::as_stored;
  const std::size_t directory = block.number(4, 4), entries = block.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * entry_bytes;
    if (block.number(entry, 2) != orientation_tag || block.number(entry + 2, 2) != short_type) continue;
    const std::size_t value = block.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : Orientation::as_stored;
  }
  return Orientation::as_stored;
}

}  // namespace h3
