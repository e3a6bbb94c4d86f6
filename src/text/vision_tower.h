// The vision tower (spec/text.md 4): patches of pictures and clips to feature rows for the language model. Ranks take
// whole segments (text/vision_work.h) and gather what they made; every rank ends with all features, the same bits on
// any number of ranks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/communicator.h"
#include "text/vision_features.h"
#include "text/vision_input.h"
#include "text/vision_work.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

struct VisionTowerOptions {
  Residency residency = Residency::streamed;
  std::int64_t row_chunk = 8192;  // patches that a linear layer takes at once; a multiple of 4
};

// Called with "patch_embed" and "blockI": the patches this rank owns [n, hidden], at Machine::place().
using VisionObserver = std::function<void(const std::string& name, const Tensor& x)>;

class VisionTower {
 public:
  // `weights`: the text encoder's set (`model.visual.*`), host memory, all f32 or all bf16; it outlives the tower.
  VisionTower(Machine& machine, Communicator& communicator, const VisionConfig& config, const WeightSet& weights,
              const VisionTowerOptions& options = {});
  ~VisionTower();

  // Features of pictures and clips in the order of the presentation's media (sounds have none). Every rank calls with
  // the same items. No items give no features.
  VisionFeatures encode(Queue& q, std::span<const VisionPixels> items, const VisionObserver& observer = {});

  // Ranks that take part in encoding these grids.
  int participants(std::span<const VisionGrid> grids) const;
  // Bytes that this takes at Machine::place() on this rank, weights included.
  std::size_t device_bytes(std::span<const VisionGrid> grids) const;

 private:
  class Pass;
  std::vector<WeightSet> groups() const;

  Machine& machine_;
  Communicator& communicator_;
  VisionConfig config_;
  const WeightSet& weights_;
  VisionTowerOptions options_;
  DType dtype_;
  std::unique_ptr<WeightGroups> steps_;
};

}  // namespace h3
