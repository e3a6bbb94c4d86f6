// Weights in the node's memory, page-locked for this rank's GPU (compute/cuda/page_lock.h): blocks, AdaLN and text
// layers then pass through the GPU at the speed of the bus. Nothing waits for the lock, and where the system refuses
// it, all works as before, slower; the log says so.
#pragma once

#include <memory>
#include <string>

#include "compute/machine.h"
#include "weights/node_window.h"

namespace h3 {

class PageLock;

class WeightLock {
 public:
  // Begins to lock `block`, which outlives the lock. Null on machines without a GPU, and for a block on a disk that
  // would leave the host too little memory. `what` names the weights in the log; `tells`: success is worth a line.
  static std::shared_ptr<WeightLock> start(const Machine& machine, const WeightBlock& block, std::string what,
                                           bool tells);
  ~WeightLock();
  WeightLock(const WeightLock&) = delete;
  WeightLock& operator=(const WeightLock&) = delete;

  // Returns when all is locked that will be.
  struct Outcome {
    std::size_t bytes = 0;
    double seconds = 0;
  };
  Outcome wait();

 private:
  explicit WeightLock(std::unique_ptr<PageLock> pages);
  std::unique_ptr<PageLock> pages_;
};

}  // namespace h3
