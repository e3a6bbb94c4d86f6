// Units of work over ranks: contiguous blocks, owners, and what a rank computes for others.
#include "vae/work_plan.h"

#include <gtest/gtest.h>

#include <numeric>

namespace h3 {
namespace {

TEST(WorkPlan, UnitsOfAPiece) {
  const std::vector<double> shares{1};
  const WorkPlan plan(3, 15, 4, shares);
  EXPECT_EQ(plan.units_per_piece(), 4);
  EXPECT_EQ(plan.units(), 12);
  EXPECT_EQ(plan.unit(0).tiles, (Range{0, 4}));
  EXPECT_EQ(plan.unit(7).tiles, (Range{12, 15}));
  EXPECT_EQ(plan.unit(7).piece, 1);
  EXPECT_EQ(plan.unit(8).tiles, (Range{0, 4}));
}

TEST(WorkPlan, GroupsLargerThanAPiece) {
  const std::vector<double> shares{1, 1};
  const WorkPlan plan(2, 3, 100, shares);
  EXPECT_EQ(plan.units(), 2);
  EXPECT_EQ(plan.unit(1).tiles, (Range{0, 3}));
}

void check_plan(std::int64_t pieces, std::int64_t tiles, std::int64_t group, const std::vector<double>& shares) {
  const WorkPlan plan(pieces, tiles, group, shares);
  const int ranks = plan.ranks();
  std::int64_t units = 0, owned = 0;
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(plan.units_of_rank(r).begin, units);
    units = plan.units_of_rank(r).end;
    EXPECT_EQ(plan.pieces_of_owner(r).begin, owned) << "rank " << r;
    owned = plan.pieces_of_owner(r).end;
    std::int64_t foreign = 0;
    for (std::int64_t u = plan.units_of_rank(r).begin; u < plan.units_of_rank(r).end; ++u) {
      EXPECT_EQ(plan.rank_of(u), r);
      const std::int64_t piece = plan.unit(u).piece;
      const bool own = plan.owner_of(piece) == r;
      EXPECT_EQ(own, piece >= plan.pieces_of_owner(r).begin && piece < plan.pieces_of_owner(r).end);
      if (!own) foreign += plan.unit(u).tiles.size();
    }
    EXPECT_EQ(plan.foreign_tiles(r), foreign);
    EXPECT_LE(foreign, tiles) << "tiles of one piece at most";
  }
  EXPECT_EQ(units, plan.units());
  EXPECT_EQ(owned, pieces);
}

TEST(WorkPlan, BlocksOwnersAndForeignTiles) {
  for (const std::int64_t pieces : {1, 2, 7, 21})
    for (const std::int64_t tiles : {1, 2, 15, 28})
      for (const std::int64_t group : {1, 3, 4, 64})
        for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
          std::vector<double> shares(ranks, 1.0);
          check_plan(pieces, tiles, group, shares);
          std::iota(shares.begin(), shares.end(), 1.0);
          check_plan(pieces, tiles, group, shares);
          if (ranks == 1) continue;
          shares.front() = 0;
          check_plan(pieces, tiles, group, shares);
          shares[ranks / 2] = 0.25;
          check_plan(pieces, tiles, group, shares);
        }
}

TEST(WorkPlan, FewerUnitsThanRanks) {
  const std::vector<double> shares(5, 1.0);
  const WorkPlan plan(1, 2, 1, shares);
  EXPECT_EQ(plan.ranks_with_work(), 2);
  EXPECT_EQ(plan.owner_of(0), 0);
  EXPECT_EQ(plan.rank_of(1), 1);
  EXPECT_EQ(plan.pieces_of_owner(4).size(), 0);
}

}  // namespace
}  // namespace h3
