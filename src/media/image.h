// A picture as every file format here exchanges it: 8-bit RGB, interleaved, rows from top to bottom without padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace h3 {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // height * width * 3

  Image() = default;
  Image(int w, int h)
      : width(w), height(h), rgb(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3, std::uint8_t{0}) {}
  Image(int w, int h, std::span<const std::uint8_t> pixels) : width(w), height(h), rgb(pixels.begin(), pixels.end()) {}

  std::uint8_t* pixel(int x, int y) { return rgb.data() + offset(x, y); }
  const std::uint8_t* pixel(int x, int y) const { return rgb.data() + offset(x, y); }
  bool operator==(const Image&) const = default;

 private:
  std::size_t offset(int x, int y) const {
    return (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 3;
  }
};

}  // namespace h3
