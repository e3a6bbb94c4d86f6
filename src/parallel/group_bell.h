// How the groups of a world, which share no collective while they render, tell each other to stop, and how they find
// out that all are done. The first rank of each group holds a bell; whoever rings is heard by the others when they
// next listen. Nothing blocks before `close`.
#pragma once

#include <mpi.h>

#include <vector>

namespace h3 {

class GroupBell {
 public:
  // Collective over the first ranks of all groups (RankGroup::leaders).
  explicit GroupBell(MPI_Comm leaders);
  ~GroupBell();
  GroupBell(const GroupBell&) = delete;
  GroupBell& operator=(const GroupBell&) = delete;

  // Tells every other group `value` (above 0). Later calls do nothing.
  void ring(int value);
  // The largest value that any group, this one included, has rung so far; 0: none.
  int heard();
  // This group has nothing left to do, and may ring all the same; true once that holds for all groups.
  bool all_done();
  // Collective, once all_done has said so: takes in what is still under way.
  void close();

 private:
  void take(int from);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  int own_ = 0, loudest_ = 0;
  std::vector<bool> heard_from_;
  std::vector<MPI_Request> sends_;
  MPI_Request done_ = MPI_REQUEST_NULL;
  bool waiting_ = false;
};

}  // namespace h3
