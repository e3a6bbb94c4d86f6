#include "parallel/shards.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace h3 {

std::vector<Range> deal(std::int64_t units, std::span<const double> shares) {
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  H3_CHECK(total > 0);
  std::vector<std::int64_t> counts(shares.size());
  std::vector<std::size_t> order(shares.size());
  std::vector<double> remainders(shares.size());
  std::int64_t given = 0;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const double exact = static_cast<double>(units) * (shares[r] / total);
    counts[r] = static_cast<std::int64_t>(std::floor(exact));
    remainders[r] = exact - std::floor(exact);
    given += counts[r];
    order[r] = r;
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainders[a] > remainders[b]; });
  std::erase_if(order, [&](auto r) { return shares[r] <= 0; });
  for (std::size_t i = 0; given < units; ++i, ++given) ++counts[order[i % order.size()]];
  std::vector<Range> ranges(shares.size());
  std::int64_t at = 0;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    ranges[r] = {at, at + counts[r]};
    at += counts[r];
  }
  CHECK_EQ(at, units);
  return ranges;
}

std::vector<Range> deal_units(std::int64_t total, std::int64_t unit, std::span<const double> shares) {
  std::vector<Range> ranges = deal((total + unit - 1) / unit, shares);
  for (Range& r : ranges) r = {std::min(total, r.begin * unit), std::min(total, r.end * unit)};
  return ranges;
}

std::vector<double> parse_shares(std::string_view text, int ranks, const std::string& option) {
  std::vector<double> shares;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const std::string value(text);
  while (true) {
    double share = 0;
    const auto [next, error] = std::from_chars(at, end, share);
    if (error != std::errc() || !std::isfinite(share) || share < 0)
      throw UserError(option, "", value, "numbers that are finite and not negative, separated by commas, e.g. 3,2,1");
    shares.push_back(share);
    at = next;
    if (at == end) break;
    if (*at != ',') throw UserError(option, "", value, "numbers separated by commas, e.g. 3,2,1");
    ++at;
  }
  if (shares.size() != static_cast<std::size_t>(ranks))
    throw UserError(option, "", value, fmt::format("one share a rank: {} given, {} ranks", shares.size(), ranks));
  if (std::all_of(shares.begin(), shares.end(), [](double s) { return s == 0; }))
    throw UserError(option, "", value, "at least one share above 0");
  return shares;
}

ShardPlan make_shard_plan(std::int64_t rows, std::int64_t heads, std::span<const double> row_shares,
                          std::span<const double> head_shares) {
  return {deal(rows, row_shares), deal(heads, head_shares)};
}

}  // namespace h3
