// The ranks of a run: MPI started for the main thread alone, who is on which host, and how a failing rank ends all.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace h3 {

class Cluster {
 public:
  // Initialises MPI (MPI_THREAD_FUNNELED). Throws UserError for a world of one inside a job of several tasks (the
  // launcher has no matching PMI: spec in DESIGN "Open MPI").
  Cluster(int* argc, char*** argv);
  // Finalises MPI; after an exception on any rank, call `abort` instead.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& host() const { return host_; }
  // This rank's number among the ranks of its node, the node's rank count, and its communicator.
  int node_rank() const { return node_rank_; }
  int node_size() const { return node_size_; }
  MPI_Comm node_comm() const { return node_comm_; }

  // Ends every rank at once with this exit code.
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0, size_ = 1, node_rank_ = 0, node_size_ = 1;
  MPI_Comm node_comm_ = MPI_COMM_NULL;
  std::string host_;
};

}  // namespace h3
