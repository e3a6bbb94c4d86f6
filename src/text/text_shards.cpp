#include "text/text_shards.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {
namespace {

constexpr std::int64_t kTile = 128;

// Output features are dealt in blocks that keep a GEMM's tiles whole; narrow layers have too few of those.
std::int64_t feature_block(std::int64_t width) {
  return width >= 2048 ? 128 : 16;
}

// Pairs (t, n - 1 - t) dealt evenly in order; of an odd count the middle tile is a pair of its own.
std::vector<std::vector<Range>> deal_tiles(std::int64_t rows, int ranks) {
  const std::int64_t tiles = (rows + kTile - 1) / kTile;
  const std::vector<double> even(static_cast<std::size_t>(ranks), 1.0);
  std::vector<std::vector<Range>> out;
  for (const Range& pairs : deal((tiles + 1) / 2, even)) {
    std::vector<std::int64_t> mine;
    for (std::int64_t t = pairs.begin; t < pairs.end; ++t) mine.push_back(t);
    for (std::int64_t t = pairs.end - 1; t >= pairs.begin; --t) {
      if (tiles - 1 - t != t) mine.push_back(tiles - 1 - t);
    }
    std::vector<Range>& list = out.emplace_back();
    for (const std::int64_t t : mine) list.push_back({t * kTile, std::min(rows, (t + 1) * kTile)});
  }
  return out;
}

}  // namespace

std::string_view name_of(TextSharding sharding) {
  switch (sharding) {
    case TextSharding::automatic:
      return "auto";
    case TextSharding::outputs:
      return "outputs";
    case TextSharding::rows:
      return "rows";
  }
  return "";
}

std::int64_t TextShards::rows_of(int rank) const {
  std::int64_t n = 0;
  for (const Range& tile : rows[static_cast<std::size_t>(rank)]) n += tile.size();
  return n;
}

int TextShards::participants() const {
  int count = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool features = groups[r].size() > 0 || hidden[r].size() > 0 || ffn[r].size() > 0;
    count += features && !rows[r].empty() ? 1 : 0;
  }
  return count;
}

TextShards make_text_shards(const TextConfig& config, int ranks, std::int64_t rows, TextSharding sharding,
                            std::int64_t rows_from) {
  CHECK_GE(ranks, 1);
  const auto n = static_cast<std::size_t>(ranks);
  TextShards shards;
  shards.total_rows = rows;
  shards.sharding = sharding != TextSharding::automatic ? sharding
                    : rows >= rows_from                 ? TextSharding::rows
                                                        : TextSharding::outputs;
  if (shards.sharding == TextSharding::rows) {
    shards.groups.assign(n, {0, config.kv_heads});
    shards.hidden.assign(n, {0, config.hidden});
    shards.ffn.assign(n, {0, config.ffn});
    shards.rows = deal_tiles(rows, ranks);
    return shards;
  }
  const std::vector<double> even(n, 1.0);
  shards.groups = deal(config.kv_heads, even);
  shards.hidden = deal_units(config.hidden, feature_block(config.hidden), even);
  shards.ffn = deal_units(config.ffn, feature_block(config.ffn), even);
  shards.rows.assign(n, {{0, rows}});
  return shards;
}

}  // namespace h3
