// How long a planned render takes by the model of a step's time: for rank counts and machines that are not there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "render/run_plan.h"
#include "render/step_model.h"

namespace h3 {

struct PredictionRequest {
  StepRates rates;
  int ranks_per_node = 0;  // 0: all on one node
  bool streamed = false;   // the transformer's blocks pass through each card in every step
};

struct RunPrediction {
  StepRates rates;
  StepPrediction step;
  double denoise = 0, decode = 0;  // seconds
  int nodes = 1;
  bool streamed = false;
  double total() const { return denoise + decode; }
};

// Of ranks with equal cards; text, sound, loading and writing are left out.
RunPrediction predict_run(const PlanRequest& request, const RunPlan& plan, const PredictionRequest& prediction);

std::string text_of(const RunPrediction& prediction);
nlohmann::ordered_json to_json(const RunPrediction& prediction);

}  // namespace h3
