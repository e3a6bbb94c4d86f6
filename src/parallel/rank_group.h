// The ranks that render one scene together: the whole world, or one of several groups of equal size that take scenes
// from one queue (DESIGN 7, "Batches"). Ranks of a node are neighbours before the world is cut, so that a group leaves
// its node only where the node's ranks are no multiple of its size.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/cluster.h"

namespace h3 {

// The size of each group: `ranks_per_scene`, or the whole world for 0. Throws UserError naming --ranks-per-scene where
// the world is no multiple of it: shares are given per group, so all groups have one size.
int group_size(int world, std::int64_t ranks_per_scene);

// The ranks of the world node by node, each node's in order; nodes[r] is the number of rank r's node.
std::vector<int> ranks_by_node(const std::vector<int>& nodes);

class RankGroup {
 public:
  // Collective over the world.
  RankGroup(const Cluster& cluster, int size);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Which group of how many this is, from 0.
  int index() const { return index_; }
  int count() const { return count_; }
  bool first() const { return rank_ == 0; }
  bool on_one_node() const { return on_one_node_; }
  MPI_Comm comm() const { return comm_; }
  // Of the first ranks of all groups; MPI_COMM_NULL on other ranks.
  MPI_Comm leaders() const { return leaders_; }
  // "group 2 of 3", or "" for the only one.
  std::string name() const;

 private:
  int rank_ = 0, size_ = 1, index_ = 0, count_ = 1;
  bool on_one_node_ = true;
  MPI_Comm comm_ = MPI_COMM_NULL, leaders_ = MPI_COMM_NULL;
};

}  // namespace h3
