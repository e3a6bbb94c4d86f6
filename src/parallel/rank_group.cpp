#include "parallel/rank_group.h"

#include <algorithm>
#include <numeric>

#include "parallel/mpi_call.h"

namespace h3 {

int group_size(int world, std::int64_t ranks_per_scene) {
  if (ranks_per_scene == 0) return world;
  if (ranks_per_scene > world || world % ranks_per_scene != 0)
    throw UserError("--ranks-per-scene", "", std::to_string(ranks_per_scene),
                    fmt::format("a number that divides the {} ranks of this run", world));
  return static_cast<int>(ranks_per_scene);
}

std::vector<int> ranks_by_node(const std::vector<int>& nodes) {
  std::vector<int> ranks(nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto node_of = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return node_of(a) < node_of(b); });
  return ranks;
}

RankGroup::RankGroup(const Cluster& cluster, int size) : size_(size), count_(cluster.size() / size) {
  CHECK_EQ(count_ * size_, cluster.size());
  // A node is named by its lowest rank.
  int own_node = cluster.rank();
  const int rank_of_world = cluster.rank();
  H3_MPI(MPI_Allreduce(&rank_of_world, &own_node, 1, MPI_INT, MPI_MIN, cluster.node_comm()));
  std::vector<int> nodes(static_cast<std::size_t>(cluster.size()));
  H3_MPI(MPI_Allgather(&own_node, 1, MPI_INT, nodes.data(), 1, MPI_INT, MPI_COMM_WORLD));
  const std::vector<int> order = ranks_by_node(nodes);
  const auto place = static_cast<int>(std::find(order.begin(), order.end(), rank_of_world) - order.begin());
  index_ = place / size_;
  for (int i = 0; i < size_; ++i)
    if (nodes[static_cast<std::size_t>(order[static_cast<std::size_t>(index_ * size_ + i)])] != own_node)
      on_one_node_ = false;
  H3_MPI(MPI_Comm_split(MPI_COMM_WORLD, index_, place, &comm_));
  H3_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  H3_MPI(MPI_Comm_rank(comm_, &rank_));
  H3_MPI(MPI_Comm_split(MPI_COMM_WORLD, first() ? 0 : MPI_UNDEFINED, index_, &leaders_));
}

RankGroup::~RankGroup() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  MPI_Comm_free(&comm_);
  if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
}

std::string RankGroup::name() const {
  return count_ > 1 ? fmt::format("group {} of {}", index_ + 1, count_) : "";
}

}  // namespace h3
