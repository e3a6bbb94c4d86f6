// The communicator of a world of one: nothing moves. Also what each rank uses where a stage is replicated.
#pragma once

#include "parallel/communicator.h"

namespace h3 {

class SoloCommunicator final : public Communicator {
 public:
  explicit SoloCommunicator(Machine& machine) : machine_(machine) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(Queue&, std::span<const Tensor>) override {}
  void all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) override;
  void send(Queue& q, const Tensor& x, int to, int tag) override;
  void receive(Queue& q, const Tensor& x, int from, int tag) override;
  void broadcast(Queue&, const Tensor&, int) override {}
  void barrier() override {}
  std::int64_t agree_max(std::int64_t value) override { return value; }
  std::vector<std::string> gather_text(std::string_view text) override { return {std::string(text)}; }
  std::string broadcast_text(std::string_view text, int) override { return std::string(text); }
  std::vector<double> gather_value(double value) override { return {value}; }
  std::uint64_t bytes_received() const override { return 0; }

 private:
  Machine& machine_;
};

}  // namespace h3
