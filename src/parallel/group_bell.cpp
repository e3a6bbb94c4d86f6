#include "parallel/group_bell.h"

#include <algorithm>

#include "parallel/mpi_call.h"

namespace h3 {

static constexpr int kBellTag = 1;

GroupBell::GroupBell(MPI_Comm leaders) {
  H3_MPI(MPI_Comm_dup(leaders, &comm_));
  H3_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  H3_MPI(MPI_Comm_rank(comm_, &rank_));
  H3_MPI(MPI_Comm_size(comm_, &size_));
  heard_from_.resize(static_cast<std::size_t>(size_));
}

GroupBell::~GroupBell() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

void GroupBell::ring(int value) {
  if (own_ != 0) return;
  own_ = value;
  loudest_ = std::max(loudest_, value);
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    sends_.push_back(MPI_REQUEST_NULL);
    H3_MPI(MPI_Isend(&own_, 1, MPI_INT, to, kBellTag, comm_, &sends_.back()));
  }
}

void GroupBell::take(int from) {
  int value = 0;
  H3_MPI(MPI_Recv(&value, 1, MPI_INT, from, kBellTag, comm_, MPI_STATUS_IGNORE));
  heard_from_[static_cast<std::size_t>(from)] = true;
  loudest_ = std::max(loudest_, value);
}

int GroupBell::heard() {
  while (true) {
    int there = 0;
    MPI_Status status;
    H3_MPI(MPI_Iprobe(MPI_ANY_SOURCE, kBellTag, comm_, &there, &status));
    if (!there) return loudest_;
    take(status.MPI_SOURCE);
  }
}

bool GroupBell::all_done() {
  if (!waiting_) H3_MPI(MPI_Ibarrier(comm_, &done_));
  waiting_ = true;
  int all = 0;
  H3_MPI(MPI_Test(&done_, &all, MPI_STATUS_IGNORE));
  return all != 0;
}

void GroupBell::close() {
  std::vector<int> rang(static_cast<std::size_t>(size_));
  H3_MPI(MPI_Allgather(&own_, 1, MPI_INT, rang.data(), 1, MPI_INT, comm_));
  for (int from = 0; from < size_; ++from) {
    const auto i = static_cast<std::size_t>(from);
    if (from != rank_ && rang[i] != 0 && !heard_from_[i]) take(from);
  }
  H3_MPI(MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE));
}

}  // namespace h3
