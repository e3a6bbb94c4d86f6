// Who computes what of one sequence in the text encoder (spec/text.md 6.3). By outputs: every rank has all rows and
// owns whole key/value groups and blocks of output features of each matrix. By rows: every rank has all weights and
// owns tiles of 128 rows, dealt in pairs (first with last) because a causal row costs more the later it stands. Both
// give the bits of one rank: no sum is ever cut.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "parallel/shards.h"
#include "weights/model_config.h"

namespace h3 {

enum class TextSharding : std::uint8_t { automatic, outputs, rows };
std::string_view name_of(TextSharding sharding);

struct TextShards {
  TextSharding sharding = TextSharding::outputs;
  // By rank. Sharded by rows, each rank owns every group and feature of its rows.
  std::vector<Range> groups;             // key/value heads with their query heads
  std::vector<Range> hidden, ffn;        // output features of o and down, of gate and up
  std::vector<std::vector<Range>> rows;  // tiles, ascending
  std::int64_t total_rows = 0;

  std::int64_t rows_of(int rank) const;
  // Ranks that compute anything.
  int participants() const;
};

// `automatic` goes by rows from `rows_from` rows on, where the traffic of sharding by outputs passes that of the
// weights (spec/text.md 6.3).
TextShards make_text_shards(const TextConfig& config, int ranks, std::int64_t rows, TextSharding sharding,
                            std::int64_t rows_from);

}  // namespace h3
