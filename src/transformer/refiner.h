// Text states -> the rows that the transformer sees: projection to its width and two plain blocks over all text rows
// (spec/dit.md 4.2, 4.6). Depends on the prompt alone, runs once a clip, on every rank that owns text rows alike.
#pragma once

#include <functional>
#include <string>

#include "compute/operators.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

using Observer = std::function<void(const std::string& name, const Tensor& value)>;

// states [L, text_dim] in the activations' dtype at Machine::place() -> refined [L, hidden]. `weights` is the
// transformer's set in host memory. The observer, if any, sees `text_projected`, `refinerI` and `text_refined`.
void refine_text(Machine& machine, Queue& q, const TransformerConfig& config, const WeightSet& weights,
                 const Tensor& states, const Tensor& refined, const Observer& observer = {});

}  // namespace h3
