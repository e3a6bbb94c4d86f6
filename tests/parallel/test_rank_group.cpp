// How a world is cut into groups.
#include <gtest/gtest.h>

#include "base/error.h"
#include "parallel/rank_group.h"

namespace h3 {

TEST(GroupSize, DividesTheWorld) {
  EXPECT_EQ(group_size(4, 0), 4);
  EXPECT_EQ(group_size(4, 1), 1);
  EXPECT_EQ(group_size(4, 2), 2);
  EXPECT_EQ(group_size(4, 4), 4);
  for (const int size : {3, 5, 8}) EXPECT_THROW(group_size(4, size), UserError) << size;
}

TEST(RanksByNode, NeighboursShareANode) {
  EXPECT_EQ(ranks_by_node({0, 0, 0, 0}), (std::vector<int>{0, 1, 2, 3}));
  // Dealt out to two nodes in turn, as `mpirun --map-by node` does.
  EXPECT_EQ(ranks_by_node({0, 1, 0, 1, 0, 1}), (std::vector<int>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(ranks_by_node({0, 0, 2, 2, 2, 0}), (std::vector<int>{0, 1, 5, 2, 3, 4}));
}

}  // namespace h3
