#include "vae/work_plan.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {

WorkPlan::WorkPlan(std::int64_t pieces, std::int64_t tiles, std::int64_t group, std::span<const double> shares)
    : pieces_(pieces), tiles_(tiles), group_(group), units_per_piece_((tiles + group - 1) / group) {
  CHECK_GE(pieces, 1);
  CHECK_GE(tiles, 1);
  CHECK_GE(group, 1);
  by_rank_ = deal(units(), shares);
}

WorkUnit WorkPlan::unit(std::int64_t u) const {
  const std::int64_t first = u % units_per_piece_ * group_;
  return {u / units_per_piece_, {first, std::min(tiles_, first + group_)}};
}

int WorkPlan::rank_of(std::int64_t unit) const {
  const auto it = std::find_if(by_rank_.begin(), by_rank_.end(), [&](const Range& r) { return unit < r.end; });
  H3_CHECK(it != by_rank_.end());
  return static_cast<int>(it - by_rank_.begin());
}

Range WorkPlan::pieces_of_owner(int rank) const {
  const Range units = units_of_rank(rank);
  const auto first_piece_from = [&](std::int64_t u) { return (u + units_per_piece_ - 1) / units_per_piece_; };
  return {first_piece_from(units.begin), first_piece_from(units.end)};
}

std::int64_t WorkPlan::foreign_tiles(int rank) const {
  const Range mine = units_of_rank(rank);
  std::int64_t tiles = 0;
  for (std::int64_t u = mine.begin; u < mine.end && owner_of(unit(u).piece) != rank; ++u) tiles += unit(u).tiles.size();
  return tiles;
}

int WorkPlan::ranks_with_work() const {
  return static_cast<int>(std::count_if(by_rank_.begin(), by_rank_.end(), [](const Range& r) { return r.size() > 0; }));
}

}  // namespace h3
