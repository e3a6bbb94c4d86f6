#include "compute/cpu/gathered_product.h"

#include <algorithm>
#include <array>

#include "compute/cpu/gemm.h"
#include "compute/cpu/lanes.h"
#include "compute/cpu/rows.h"

namespace h3::cpu {

namespace {

// One panel's positions; those that are missing repeat the first, and their results are dropped.
struct PanelPositions {
  std::array<std::int64_t, kPanel> offset;
  bool consecutive = true;

  explicit PanelPositions(std::span<const std::int64_t> positions) {
    offset.fill(positions[0]);
    std::copy(positions.begin(), positions.end(), offset.begin());
    for (std::size_t i = 0; i < offset.size(); ++i)
      consecutive = consecutive && offset[i] == offset[0] + static_cast<std::int64_t>(i);
  }

  void pack(const float* source, std::span<const std::int64_t> taps, float* panel) const {
    for (const std::int64_t tap : taps) {
      const float* from = source + tap;
      if (consecutive) {
        store8(panel, load8(from + offset[0]));
        store8(panel + 8, load8(from + offset[0] + 8));
      } else {
        for (std::size_t i = 0; i < offset.size(); ++i) panel[i] = from[offset[i]];
      }
      panel += kPanel;
    }
  }
};

}  // namespace

void gathered_product(const GatheredProduct& p, std::int64_t begin, std::int64_t end) {
  float* sums = scratch(0, p.outputs * kPositions);
  float* panel = scratch(1, kBlockK * kPanel);
  const auto taps = static_cast<std::int64_t>(p.taps.size());
  const std::int64_t count = end - begin;
  if (taps == 0) std::fill_n(sums, p.outputs * kPositions, 0.0f);
  for (std::int64_t t = 0; t < taps; t += kBlockK) {
    const auto block =
        p.taps.subspan(static_cast<std::size_t>(t), static_cast<std::size_t>(std::min(kBlockK, taps - t)));
    for (std::int64_t c = 0; c < count; c += kPanel) {
      const auto columns = static_cast<std::size_t>(std::min(kPanel, count - c));
      const PanelPositions positions(p.positions.subspan(static_cast<std::size_t>(begin + c), columns));
      positions.pack(p.source, block, panel);
      multiply_block(p.weight + t, p.weight_stride, p.outputs, panel, static_cast<std::int64_t>(block.size()), sums + c,
                     kPositions, t > 0);
    }
  }
  for (std::int64_t o = 0; o < p.outputs; ++o) {
    const float bias = p.bias ? p.bias[o] : 0.0f;
    float* out = p.y + o * p.y_stride + begin * p.y_step;
    const float* sum = sums + o * kPositions;
    for (std::int64_t i = 0; i < count; ++i) out[i * p.y_step] = p.bias ? sum[i] + bias : sum[i];
  }
}

}  // namespace h3::cpu
