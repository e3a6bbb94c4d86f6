#include "text/vision_work.h"

#include <algorithm>
#include <numeric>

namespace h3 {

std::vector<VisionSegment> segments_of(std::span<const VisionGrid> grids) {
  std::vector<VisionSegment> segments;
  std::int64_t token = 0, item = 0;
  for (const VisionGrid& grid : grids) {
    for (std::int64_t block = 0; block < grid.blocks; ++block) {
      segments.push_back({item, block, grid.rows, grid.columns, token});
      token += segments.back().tokens();
    }
    ++item;
  }
  return segments;
}

double segment_cost(const VisionConfig& config, const VisionSegment& segment) {
  const auto n = static_cast<double>(segment.patches()), width = static_cast<double>(config.hidden);
  const auto depth = static_cast<double>(config.depth), ffn = static_cast<double>(config.ffn);
  const double linears = depth * 2 * width * (4 * width + 2 * ffn), attention = depth * 4 * width;
  const double merged = 4 * width, mergers = static_cast<double>(config.deepstack.size() + 1);
  const double merging = mergers * 2 * merged * (merged + static_cast<double>(config.out_hidden)) / 4;
  return n * (linears + merging) + n * n * attention;
}

std::vector<std::vector<std::size_t>> deal_segments(const VisionConfig& config, std::span<const VisionSegment> segments,
                                                    int ranks) {
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return segment_cost(config, segments[a]) > segment_cost(config, segments[b]);
  });
  std::vector<std::vector<std::size_t>> dealt(static_cast<std::size_t>(ranks));
  std::vector<double> load(dealt.size());
  for (const std::size_t i : order) {
    const auto rank = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    dealt[rank].push_back(i);
    load[rank] += segment_cost(config, segments[i]);
  }
  for (auto& list : dealt) std::sort(list.begin(), list.end());
  return dealt;
}

}  // namespace h3
