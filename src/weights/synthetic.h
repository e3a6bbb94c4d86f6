// Seeded synthetic weights of any configuration. A value is a function of (seed, component, canonical name, element)
// alone, so ranks and threads may make any part in any order; ranges are those of trained weights, so that measurements
// exercise real arithmetic: norms near 1, linear layers of unit gain, small biases, no zeros but where the model itself
// has them.
#pragma once

#include <cstdint>

#include "weights/tensor_source.h"

namespace h3 {

// Changes whenever any value would; part of the identity of synthetic models.
constexpr int kSyntheticVersion = 1;

class SyntheticSource : public TensorSource {
 public:
  SyntheticSource(std::uint64_t seed, Component component) : seed_(seed), component_(component) {}
  void read_rows(const PlannedTensor& tensor, std::int64_t begin, std::int64_t end, void* to) const override;

 private:
  std::uint64_t seed_;
  Component component_;
};

}  // namespace h3
