// What the vision tower gives to the language model: one feature row for every presented row that takes one, and as
// many again for each deepstack layer (spec/text.md 4.6).
#pragma once

#include <vector>

#include "compute/machine.h"
#include "compute/tensor.h"

namespace h3 {

// Host tensors [n, hidden] of the text encoder's dtype, rows in the order of the presentation's media. `deepstack[k]`
// joins after layer k.
struct VisionFeatures {
  Tensor embeddings;
  std::vector<Tensor> deepstack;
  std::vector<Buffer> memory;  // behind the tensors
};

}  // namespace h3
