// The communicator between GPUs: NCCL for device tensors, MPI for host tensors and decisions. The unique id travels by
// MPI, so no port is fixed. The header names no NCCL type; it may be called only in builds with H3RENDER_WITH_CUDA.
#pragma once

#include <memory>

#include "parallel/mpi_communicator.h"

namespace h3 {

class NcclCommunicator final : public Communicator {
 public:
  // Collective over `comm`; each rank has a GPU of its own, which is current.
  NcclCommunicator(MPI_Comm comm, Machine& machine);
  ~NcclCommunicator() override;

  int rank() const override { return mpi_.rank(); }
  int size() const override { return mpi_.size(); }
  void all_gather(Queue& q, std::span<const Tensor> blocks) override;
  void all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) override;
  void send(Queue& q, const Tensor& x, int to, int tag) override;
  void receive(Queue& q, const Tensor& x, int from, int tag) override;
  void broadcast(Queue& q, const Tensor& x, int root) override;
  void barrier() override { mpi_.barrier(); }
  std::int64_t agree_max(std::int64_t value) override { return mpi_.agree_max(value); }
  std::vector<std::string> gather_text(std::string_view text) override { return mpi_.gather_text(text); }
  std::string broadcast_text(std::string_view text, int root) override { return mpi_.broadcast_text(text, root); }
  std::vector<double> gather_value(double value) override { return mpi_.gather_value(value); }
  std::uint64_t bytes_received() const override { return bytes_received_ + mpi_.bytes_received(); }
  double transfer_seconds() override;

  // "NCCL 2.28.3".
  static std::string version();

 private:
  struct Impl;
  MpiCommunicator mpi_;
  Machine& machine_;
  std::unique_ptr<Impl> impl_;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace h3
