#include "vae/tile_plan.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace h3 {

std::int64_t TileAxis::largest_overlap() const {
  return overlaps.empty() ? 0 : *std::max_element(overlaps.begin(), overlaps.end());
}

TileAxis TileAxis::divided_by(std::int64_t ratio) const {
  const auto divide = [&](std::int64_t v) {
    CHECK_EQ(v % ratio, 0);
    return v / ratio;
  };
  TileAxis axis;
  axis.length = divide(length);
  axis.tile = divide(tile);
  for (const std::int64_t s : starts) axis.starts.push_back(divide(s));
  for (const std::int64_t o : overlaps) axis.overlaps.push_back(divide(o));
  return axis;
}

TileAxis tile_axis(std::int64_t length, std::int64_t tile, std::int64_t overlap, std::int64_t unit) {
  if (length <= 0 || length % unit != 0)
    throw UserError("canvas", "side", std::to_string(length), fmt::format("a positive multiple of {}", unit));
  TileAxis axis;
  axis.length = length;
  axis.tile = std::min(length, tile);
  axis.starts = {0};
  if (length <= tile) return axis;

  std::int64_t count = (length + tile - 1) / tile;
  const auto slack = [&] { return tile * count - overlap * (count - 1) - length; };
  while (slack() < 0) ++count;
  axis.overlaps.assign(static_cast<std::size_t>(count - 1), overlap);
  for (std::int64_t i = 0; i < slack() / unit; ++i) axis.overlaps[static_cast<std::size_t>(i % (count - 1))] += unit;
  for (const std::int64_t o : axis.overlaps) axis.starts.push_back(axis.starts.back() + tile - o);
  CHECK_EQ(axis.starts.back() + tile, length);
  return axis;
}

TilePlan plan_tiles(const VideoVaeConfig& config, std::int64_t height, std::int64_t width) {
  const auto axis = [&](std::int64_t length) {
    return tile_axis(length, config.tile, config.tile_overlap, config.ratio_s());
  };
  return {axis(height), axis(width)};
}

}  // namespace h3
