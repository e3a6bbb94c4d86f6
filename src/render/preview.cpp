#include "render/preview.h"

#include <algorithm>

namespace h3 {

std::filesystem::path preview_path(const std::filesystem::path& folder, const std::string& scene) {
  return folder / (scene + ".preview.png");
}

void remove_preview(const std::filesystem::path& folder, const std::string& scene) {
  std::error_code ignored;
  std::filesystem::remove(preview_path(folder, scene), ignored);
}

Image preview_strip(const LatentColours& colours, std::int64_t frames, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kMostFrames = 6, kSide = LatentColours::kSide;
  const std::int64_t shown = std::min(frames, kMostFrames);
  Image strip(static_cast<int>(shown * width * kSide), static_cast<int>(height * kSide));
  for (std::int64_t i = 0; i < shown; ++i) {
    const std::int64_t frame = shown == 1 ? 0 : i * (frames - 1) / (shown - 1);
    const std::vector<std::uint8_t> picture = colours.picture(frame);
    for (std::int64_t line = 0; line < height * kSide; ++line)
      std::copy_n(picture.begin() + line * width * kSide * 3, width * kSide * 3,
                  strip.pixel(static_cast<int>(i * width * kSide), static_cast<int>(line)));
  }
  return strip;
}

}  // namespace h3
