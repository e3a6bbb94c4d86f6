// A self-test of one machine's operators: whatever a layer, an attention or a convolution computes in one call has the
// same bits when the call is cut into slices of one, odd and many rows, of outputs, of heads, of frames. The promise
// that a scene does not depend on the number of ranks stands on this (DESIGN 1), and libraries give it only while one
// algorithm serves all sizes, so that anybody can check it on a card and driver that nobody has tried.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "compute/machine.h"
#include "weights/model_config.h"

namespace h3 {

// One operator at one shape: how many slices were compared with the whole, and how many differ in any byte.
struct SliceComparison {
  std::string what;
  std::int64_t slices = 0, different = 0;
  double seconds = 0;
};

struct DeviceCheckSizes {
  std::int64_t rows = 2311;           // of linear layers and attention
  std::int64_t side = 40;             // of the pictures that are convolved
  std::int64_t most_heads = 8;        // of an attention
  std::int64_t most_channels = 1024;  // of a convolution
};

// The linear layers of all components in both precisions, each kind of attention, and the convolutions of the video
// encoder and the audio decoder, at the model's widths; random values. `found` is called after each.
void check_device(Machine& machine, const ModelConfig& config, const DeviceCheckSizes& sizes,
                  const std::function<void(const SliceComparison&)>& found);

}  // namespace h3
