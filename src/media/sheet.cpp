#include "media/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace h3 {

namespace {

constexpr int frames_per_second = 24;
constexpr int widest_cell = 320, gap = 4, label_height = 14, wave_height = 48, columns = 4;
using Colour = std::array<std::uint8_t, 3>;
constexpr Colour paper{24, 24, 28}, ink{200, 200, 205}, wave{96, 180, 255}, axis{70, 70, 78};

void fill(Image& image, int x0, int y0, int width, int height, const Colour& colour) {
  for (int y = std::max(0, y0); y < std::min(image.height, y0 + height); ++y)
    for (int x = std::max(0, x0); x < std::min(image.width, x0 + width); ++x)
      std::copy(colour.begin(), colour.end(), image.pixel(x, y));
}

void paste(Image& image, const Image& part, int x0, int y0) {
  for (int y = 0; y < part.height; ++y)
    std::copy_n(part.pixel(0, y), 3 * static_cast<std::size_t>(part.width), image.pixel(x0, y0 + y));
}

// Digits of 3 x 5 dots, a row each three bits; enough for times.
constexpr std::array<std::array<std::uint8_t, 5>, 10> digits{{{7, 5, 5, 5, 7},
                                                              {2, 6, 2, 2, 7},
                                                              {7, 1, 7, 4, 7},
                                                              {7, 1, 7, 1, 7},
                                                              {5, 5, 7, 1, 1},
                                                              {7, 4, 7, 1, 7},
                                                              {7, 4, 7, 5, 7},
                                                              {7, 1, 1, 1, 1},
                                                              {7, 5, 7, 5, 7},
                                                              {7, 5, 7, 1, 7}}};
constexpr std::array<std::uint8_t, 5> point{0, 0, 0, 0, 2};

void write(Image& image, int x, int y, std::string_view number) {
  constexpr int dot = 2;
  for (const char c : number) {
    const auto& rows = c == '.' ? point : digits[static_cast<std::size_t>(c - '0')];
    for (int row = 0; row < 5; ++row)
      for (int column = 0; column < 3; ++column)
        if (rows[static_cast<std::size_t>(row)] >> (2 - column) & 1)
          fill(image, x + dot * column, y + dot * row, dot, dot, ink);
    x += 4 * dot;
  }
}

// Lowest and highest sample of each column; the scale is fixed at -1 to 1.
void draw_wave(Image& image, std::span<const float> samples, int y0) {
  const int left = gap, width = image.width - 2 * gap, half = wave_height / 2;
  fill(image, left, y0 + half, width, 1, axis);
  const auto n = static_cast<std::int64_t>(samples.size());
  for (int x = 0; x < width; ++x) {
    const std::int64_t begin = n * x / width, end = std::max(n * (x + 1) / width, std::min(n, begin + 1));
    float low = 1, high = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const float sample = samples[static_cast<std::size_t>(i)];
      if (!std::isfinite(sample)) continue;
      low = std::min(low, std::clamp(sample, -1.0f, 1.0f));
      high = std::max(high, std::clamp(sample, -1.0f, 1.0f));
    }
    if (low > high) continue;
    const auto row = [&](float v) {
      return y0 + half - static_cast<int>(std::lrint(v * static_cast<float>(half - 1)));
    };
    fill(image, left + x, row(high), 1, row(low) - row(high) + 1, wave);
  }
}

}  // namespace

Image shrunk(const Image& image, int width, int height) {
  H3_CHECK(width >= 1 && height >= 1 && width <= image.width && height <= image.height);
  Image result(width, height);
  for (int y = 0; y < height; ++y) {
    const int top = y * image.height / height, bottom = (y + 1) * image.height / height;
    for (int x = 0; x < width; ++x) {
      const int left = x * image.width / width, right = (x + 1) * image.width / width;
      std::array<std::int64_t, 3> sum{};
      for (int v = top; v < bottom; ++v)
        for (int u = left; u < right; ++u)
          for (std::size_t c = 0; c < 3; ++c) sum[c] += image.pixel(u, v)[c];
      const std::int64_t count = std::int64_t{bottom - top} * (right - left);
      for (std::size_t c = 0; c < 3; ++c)
        result.pixel(x, y)[c] = static_cast<std::uint8_t>((2 * sum[c] + count) / (2 * count));
    }
  }
  return result;
}

ContactSheet::ContactSheet(int width, int height, std::int64_t frames, int cells) : width_(width), height_(height) {
  H3_CHECK(width >= 1 && height >= 1 && frames >= 1 && cells >= 1);
  const std::int64_t count = std::min<std::int64_t>(frames, cells);
  for (std::int64_t i = 0; i < count; ++i)
    shown_.push_back(count == 1 ? 0 : (i * (frames - 1) + (count - 1) / 2) / (count - 1));
  const int cell_width = std::min(width, widest_cell);
  const int cell_height =
      std::clamp(static_cast<int>(std::lround(static_cast<double>(cell_width) * height / width)), 1, height);
  cells_.assign(shown_.size(), Image(cell_width, cell_height));
}

bool ContactSheet::shows(std::int64_t frame) const {
  return std::binary_search(shown_.begin(), shown_.end(), frame);
}

void ContactSheet::add(std::int64_t frame, std::span<const std::uint8_t> rgb) {
  const auto it = std::lower_bound(shown_.begin(), shown_.end(), frame);
  if (it == shown_.end() || *it != frame) return;
  CHECK_EQ(rgb.size(), static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3);
  Image& cell = cells_[static_cast<std::size_t>(it - shown_.begin())];
  cell = shrunk(Image(width_, height_, rgb), cell.width, cell.height);
}

Image ContactSheet::draw(const Sound& sound) const {
  const int count = static_cast<int>(cells_.size()), across = std::min(columns, count);
  const int rows = (count + across - 1) / across;
  const int cell_width = cells_.front().width, cell_height = cells_.front().height;
  const int grid_height = rows * (cell_height + label_height + gap);
  Image sheet(gap + across * (cell_width + gap), gap + grid_height + sound.channels * (wave_height + gap));
  fill(sheet, 0, 0, sheet.width, sheet.height, paper);
  for (int i = 0; i < count; ++i) {
    const int x = gap + i % across * (cell_width + gap), y = gap + i / across * (cell_height + label_height + gap);
    paste(sheet, cells_[static_cast<std::size_t>(i)], x, y);
    const double seconds = static_cast<double>(shown_[static_cast<std::size_t>(i)]) / frames_per_second;
    write(sheet, x, y + cell_height + 2, fmt::format("{:.2f}", seconds));
  }
  for (int c = 0; c < sound.channels; ++c)
    draw_wave(sheet, sound.channel(c), gap + grid_height + c * (wave_height + gap));
  return sheet;
}

}  // namespace h3
