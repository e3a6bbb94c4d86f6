// The communicator over MPI and host memory: for CPUs, for several ranks on one GPU, and the transport `host`. Tensors
// of a GPU are staged through page-locked host buffers.
#pragma once

#include <mpi.h>

#include "parallel/communicator.h"

namespace h3 {

class MpiCommunicator final : public Communicator {
 public:
  // Duplicates `comm`, so that its messages meet no others. Only the thread that initialised MPI may call.
  MpiCommunicator(MPI_Comm comm, Machine& machine);
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_gather(Queue& q, std::span<const Tensor> blocks) override;
  void all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) override;
  void send(Queue& q, const Tensor& x, int to, int tag) override;
  void receive(Queue& q, const Tensor& x, int from, int tag) override;
  void broadcast(Queue& q, const Tensor& x, int root) override;
  void barrier() override;
  std::int64_t agree_max(std::int64_t value) override;
  std::vector<std::string> gather_text(std::string_view text) override;
  std::string broadcast_text(std::string_view text, int root) override;
  std::vector<double> gather_value(double value) override;
  std::uint64_t bytes_received() const override { return bytes_received_; }

 private:
  class Messages;

  Machine& machine_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace h3
