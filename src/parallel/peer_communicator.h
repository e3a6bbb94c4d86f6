// The communicator between GPUs of one node that read each other's memory: prepared transfers are copies by the copy
// engines, which take no multiprocessor from kernels that run beside them. Each rank copies what it receives out of its
// peers' memory, on a queue of its own; streams wait for each other through PeerSignals, so neither MPI nor a host
// takes part in a step. All other calls go to another communicator.
#pragma once

#include <memory>

#include "parallel/mpi_communicator.h"

namespace h3 {

class PeerCommunicator final : public Communicator {
 public:
  // Connects the ranks of `comm`, whose GPUs are current, and tries out a transfer. Collective. Returns nothing where
  // they cannot read each other's memory, with the reason in `obstacle`, the same on each rank; takes `rest`, which
  // carries all but prepared transfers, only where they can.
  static std::unique_ptr<PeerCommunicator> connect(MPI_Comm comm, Machine& machine, std::unique_ptr<Communicator>& rest,
                                                   std::string& obstacle);
  ~PeerCommunicator() override;

  int rank() const override { return node_.rank(); }
  int size() const override { return node_.size(); }
  std::unique_ptr<Transfer> prepare(Operators& operators, std::span<const Tensor> sends,
                                    std::span<const Tensor> receives, const Tensor& staging) override;
  bool beside_queue() const override { return true; }
  void all_gather(Queue& q, std::span<const Tensor> blocks) override { rest_->all_gather(q, blocks); }
  void all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) override {
    rest_->all_to_all(q, sends, receives);
  }
  void send(Queue& q, const Tensor& x, int to, int tag) override { rest_->send(q, x, to, tag); }
  void receive(Queue& q, const Tensor& x, int from, int tag) override { rest_->receive(q, x, from, tag); }
  void broadcast(Queue& q, const Tensor& x, int root) override { rest_->broadcast(q, x, root); }
  void barrier() override { node_.barrier(); }
  std::int64_t agree_max(std::int64_t value) override { return node_.agree_max(value); }
  std::vector<std::string> gather_text(std::string_view text) override { return node_.gather_text(text); }
  std::string broadcast_text(std::string_view text, int root) override { return node_.broadcast_text(text, root); }
  std::vector<double> gather_value(double value) override { return node_.gather_value(value); }
  std::uint64_t bytes_received() const override;
  double transfer_seconds() override;  // what queues waited in `finish`, for copies that were not done yet

 private:
  struct Links;
  class PeerTransfer;
  PeerCommunicator(MPI_Comm comm, Machine& machine);
  std::string try_out(Machine& machine);
  // "rank 1: ..." for the first rank on which `attempt` throws, on every rank; or "".
  template <typename F>
  std::string first_problem(F&& attempt);

  MpiCommunicator node_;
  std::unique_ptr<Links> links_;
  std::unique_ptr<Communicator> rest_;
};

}  // namespace h3
