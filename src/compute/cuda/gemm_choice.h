// Kinds of linear layers for which an algorithm further down the heuristic's list is faster than the first. A table in
// the source by compute capability and layer, never a stopwatch at run time, so that every run takes the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compute/cuda/gemm_table.h"

namespace h3 {

// What tells an algorithm from the others that the heuristic offers for a layer.
struct GemmConfig {
  int id, tile, stages, custom, cluster;
  bool operator==(const GemmConfig&) const = default;
};

struct GemmChoice {
  int capability;  // as 90 for 9.0
  GemmKey layer;
  std::int64_t nominal_rows;  // at which the heuristic offers it
  GemmConfig config;
};

// The table's entry for a kind of layer, or null.
const GemmChoice* gemm_choice(int capability, const GemmKey& layer);
// Which of `candidates` has the configuration: its index; none where another version of the library offers others.
std::optional<std::size_t> find_config(std::span<const cublasLtMatmulAlgo_t> candidates, const GemmConfig& config);

}  // namespace h3
