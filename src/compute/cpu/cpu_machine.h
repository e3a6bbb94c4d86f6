// The machine without an accelerator: host memory, queues that run at once, CPU operators.
#pragma once

#include "compute/cpu/cpu_operators.h"
#include "compute/machine.h"

namespace h3 {

class CpuQueue final : public Queue {
 public:
  void wait() override {}
  void wait_for(Queue&) override {}
};

class CpuMachine final : public Machine {
 public:
  std::string name() const override;
  std::string backend() const override { return "cpu"; }
  std::string capability() const override;
  std::string library_versions() const override;
  Place place() const override { return Place::host; }
  std::size_t free_memory() const override;
  std::size_t total_memory() const override;
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<CpuQueue>(); }
  Operators& operators() override { return operators_; }
  void* allocate(std::size_t bytes, Place place) override;
  void release(void* data, Place place) override;
  void copy(Queue& queue, const Tensor& from, const Tensor& to) override;

 private:
  CpuOperators operators_;
};

}  // namespace h3
