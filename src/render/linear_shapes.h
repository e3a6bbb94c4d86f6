// Every kind of linear layer that a render meets, so that one rank can choose the library's algorithms for all.
#pragma once

#include <vector>

#include "compute/operators.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

std::vector<LinearShape> linear_shapes(const ModelConfig& config, Precision precision, VaeProfile profile);

}  // namespace h3
