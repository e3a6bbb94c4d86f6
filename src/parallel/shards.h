// Who owns what: rows and heads (or any counted units) dealt to ranks in proportion to their shares, in rank order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Deals `units` by largest remainder, ties to the lower rank. Shares are finite, not negative and not all zero; share 0
// gets nothing.
std::vector<Range> deal(std::int64_t units, std::span<const double> shares);

// Deals `total` elements in whole units of `unit` (the last unit may be short).
std::vector<Range> deal_units(std::int64_t total, std::int64_t unit, std::span<const double> shares);

// Parses "3,2,1". Throws UserError naming `option` for a wrong count, negative, NaN, infinite or all-zero shares.
std::vector<double> parse_shares(std::string_view text, int ranks, const std::string& option);

// What each rank owns of one packed sequence.
struct ShardPlan {
  std::vector<Range> rows;   // by rank, in order, covering [0, S)
  std::vector<Range> heads;  // by rank, in order, covering [0, heads)
};
ShardPlan make_shard_plan(std::int64_t rows, std::int64_t heads, std::span<const double> row_shares,
                          std::span<const double> head_shares);

}  // namespace h3
