#include "text/vision_input.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/resize.h"

namespace h3 {
namespace {

constexpr std::int64_t kFactor = 32;  // two patches, which one token spans
constexpr std::int64_t kPictureMin = 65536, kPictureMax = 16777216;
constexpr std::int64_t kClipMin = 4096, kClipMax = 25165824;

// Sides in pixels, multiples of kFactor. `volume` is what counts against the budget: `frames` * area, where `rounded`
// frames stand for them in the decision whether anything is scaled.
struct Budget {
  std::int64_t frames = 1, rounded = 1;
  std::int64_t least = 0, most = 0;
};

VisionGrid scaled_grid(double width, double height, const Budget& budget) {
  if (std::max(width, height) / std::min(width, height) > 200) {
    throw UserError("", "picture", fmt::format("{} x {}", width, height), "sides are at most 200 to 1");
  }
  const auto nearest = [](double side) { return static_cast<std::int64_t>(std::nearbyint(side / kFactor)) * kFactor; };
  std::int64_t w = nearest(width), h = nearest(height);
  const double volume = static_cast<double>(budget.frames) * height * width;
  if (budget.rounded * h * w > budget.most) {
    const double beta = std::sqrt(volume / static_cast<double>(budget.most));
    const auto shrink = [&](double side) {
      return std::max(kFactor, static_cast<std::int64_t>(std::floor(side / beta / kFactor)) * kFactor);
    };
    w = shrink(width), h = shrink(height);
  } else if (budget.rounded * h * w < budget.least) {
    const double beta = std::sqrt(static_cast<double>(budget.least) / volume);
    const auto grow = [&](double side) {
      return static_cast<std::int64_t>(std::ceil(side * beta / kFactor)) * kFactor;
    };
    w = grow(width), h = grow(height);
  }
  return {1, h / kPatchPixels, w / kPatchPixels};
}

// Packs frames (two a block) of the grid's size.
void pack(std::span<const Image> frames, VisionPixels& out) {
  const VisionGrid& grid = out.grid;
  out.patches.resize(static_cast<std::size_t>(grid.patches() * kPatchValues));
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t block = 0; block < grid.blocks; ++block) {
    for (std::int64_t merged_row = 0; merged_row < grid.rows / 2; ++merged_row) {
      std::uint8_t* to = out.patches.data() + (block * grid.rows + 2 * merged_row) * grid.columns * kPatchValues;
      for (std::int64_t patch = 0; patch < 2 * grid.columns; ++patch) {
        const std::int64_t row = 2 * merged_row + patch % 4 / 2, column = patch / 4 * 2 + patch % 2;
        for (std::int64_t value = 0; value < kPatchValues; ++value) {
          const std::int64_t x = value % kPatchPixels, y = value / kPatchPixels % kPatchPixels;
          const std::int64_t frame = value / (kPatchPixels * kPatchPixels) % 2, channel = value / (kPatchValues / 3);
          const Image& image = frames[static_cast<std::size_t>(2 * block + frame)];
          *to++ = image.pixel(static_cast<int>(column * kPatchPixels + x),
                              static_cast<int>(row * kPatchPixels + y))[channel];
        }
      }
    }
  }
}

Image fitted(const Image& image, const VisionGrid& grid) {
  return resize_bicubic(image, static_cast<int>(grid.columns * kPatchPixels),
                        static_cast<int>(grid.rows * kPatchPixels));
}

}  // namespace

VisionGrid picture_grid(std::int64_t width, std::int64_t height) {
  CHECK_GE(std::min(width, height), 1);
  return scaled_grid(static_cast<double>(width), static_cast<double>(height), {1, 1, kPictureMin, kPictureMax});
}

VisionGrid clip_grid(std::int64_t samples, std::int64_t width, std::int64_t height) {
  CHECK_GE(std::min({samples, width, height}), 1);
  auto w = static_cast<double>(width), h = static_cast<double>(height);
  if (w < kFactor || h < kFactor) {
    const double scale = std::max(kFactor / h, kFactor / w);
    w = std::trunc(w * scale), h = std::trunc(h * scale);
  }
  const auto rounded = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(samples) / 2)) * 2;
  VisionGrid grid = scaled_grid(w, h, {samples, rounded, kClipMin, kClipMax});
  grid.blocks = (samples + 1) / 2;
  return grid;
}

VisionPixels picture_patches(const Image& picture) {
  VisionPixels out{picture_grid(picture.width, picture.height), {}};
  const Image image = fitted(picture, out.grid);
  const std::array<Image, 2> frames = {image, image};
  pack(frames, out);
  return out;
}

VisionPixels clip_patches(std::span<const Image> samples) {
  CHECK_GE(samples.size(), 1u);
  const Image& first = samples[0];
  VisionPixels out{clip_grid(static_cast<std::int64_t>(samples.size()), first.width, first.height), {}};
  std::vector<Image> frames;
  for (const Image& sample : samples) {
    H3_CHECK(sample.width == first.width && sample.height == first.height, "frames of one clip have one size");
    frames.push_back(fitted(sample, out.grid));
  }
  if (frames.size() % 2 != 0) frames.push_back(frames.back());
  pack(frames, out);
  return out;
}

const std::array<float, 256>& normalized_levels() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) - 127.5f) / 127.5f;
    return values;
  }();
  return table;
}

}  // namespace h3
