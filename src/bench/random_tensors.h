// Normal values in new buffers that live as long as this object: what benches compute on. A card that is limited by
// power runs faster on zeros, so nothing is ever timed on them.
#pragma once

#include <deque>
#include <random>
#include <vector>

#include "compute/operators.h"

namespace h3 {

class RandomTensors {
 public:
  RandomTensors(Machine& machine, Queue& q) : machine_(machine), q_(q) {}
  // At Machine::place(). A few million values are drawn and repeated, so that large tensors take no time to make.
  Tensor make(Shape shape, DType dtype);

 private:
  Machine& machine_;
  Queue& q_;
  std::mt19937 words_{1};
  std::deque<Buffer> buffers_;
};

// Normal values in host memory.
std::vector<float> random_values(std::int64_t count, std::uint64_t seed);

}  // namespace h3
