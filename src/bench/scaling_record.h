// What `bench scaling` measured, run after run, in one JSON file: points of one model on one kind of machine. Runs with
// different rank counts add theirs; the tables, the plots and the model of a step's time read them all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench_table.h"
#include "render/step_model.h"

namespace h3 {

// One measurement. `strong`: a step of one clip on all ranks. `weak`: of a clip of equal operations a rank.
// `throughput`: a clip on every rank alone, all at once. `text` and `decode`: these stages of one clip on all ranks.
struct ScalingPoint {
  std::string kind;
  int ranks = 1, nodes = 1;
  std::int64_t rows = 0;  // decode: frames
  std::string transport, exchange;
  Timing time;
  double flops = 0;
  double exposed = 0;  // seconds of communication that nothing hid
  CardState card;
};

struct ScalingRecord {
  std::string machine, libraries, precision, model;
  std::vector<ScalingPoint> points;
  // In place of a point of equal kind, ranks, nodes, rows, transport and exchange.
  void add(const ScalingPoint& point);
};

// Throws UserError naming the file where it is missing or no such record.
ScalingRecord read_scaling(const std::filesystem::path& file);
nlohmann::ordered_json to_json(const ScalingRecord& record);

// Rates fitted to the steps of one and two ranks of one node. Throws UserError where there are none of one rank.
StepRates fitted_rates(const ScalingRecord& record, const TransformerConfig& config);

// What a point's speed-up and efficiency count from: the same work on the fewest ranks on which it was measured (weak
// points: the shortest clip of one step's); null where there is none.
const ScalingPoint* base_point(const ScalingRecord& record, const ScalingPoint& of);

// Fewest clips from which on a clip a rank at a time finishes a batch no later than all ranks on each clip in turn, for
// any number of clips up to `most`; 0: never.
std::int64_t crossover(double seconds_together, double seconds_alone, int ranks, std::int64_t most = 1000);

// All points with speed-up, efficiency and what the model predicts for them; and the crossovers.
std::string scaling_text(const ScalingRecord& record, const TransformerConfig& config);

}  // namespace h3
