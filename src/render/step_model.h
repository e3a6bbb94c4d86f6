// How long a step takes on ranks that nobody has measured yet: each rank's operations over the rates that its card
// keeps up in a step, and after them the bytes that it receives over the rate of its links, as the exchange works in
// order. Rates come from measured steps (fit_step_rates) or from a card's name; every prediction carries where they
// came from.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/exchange.h"
#include "weights/model_config.h"

namespace h3 {

// What one rank does a second, in a step; 0 bytes a second: nothing is exchanged there.
struct StepRates {
  std::string source;         // in words
  double linear = 0;          // operations of the linear layers, norms and gates beside them included
  double attention = 0;       // operations of attention
  double link = 0;            // bytes received from ranks of the same node
  double node_link = 0;       // bytes received from ranks of other nodes
  double exchange_delay = 0;  // seconds a layer that exchanging takes whatever it moves
  double host_link = 0;       // bytes of weights copied from host to device
  double decode = 0;          // operations of the video decoder
};

// The ranks of a step. Ranks of a node are neighbours.
struct StepRanks {
  ShardPlan plan;
  ExchangePattern pattern = ExchangePattern::all_gather;
  std::size_t element = 2;     // bytes of an activation
  int ranks_per_node = 0;      // 0: all on one node
  std::vector<double> speeds;  // of each rank's card, as a part of the rates; empty: 1
  double streamed_bytes = 0;   // of weights that each rank copies in from its host in every step
};

struct StepPrediction {
  double compute = 0;    // seconds of the slowest rank
  double exchange = 0;   // seconds after it that nothing hides
  double streaming = 0;  // seconds that weights take to arrive beside them
  double seconds() const { return std::max(compute + exchange, streaming); }
  // "compute", "exchange" or "weights", whichever takes most.
  std::string_view bound() const;
};
StepPrediction predict_step(const TransformerConfig& config, const StepRanks& ranks, const StepRates& rates);

// Seconds of decoding a clip on equal ranks: the rank with most units of work sets them.
double predict_decode(double flops, std::int64_t units, int ranks, const StepRates& rates);

// A step that was measured on equal shares of one node.
struct StepPoint {
  int ranks = 1;
  std::int64_t rows = 0;
  double seconds = 0;
};
// Rates that explain the points with least squares of relative errors: linear and attention from those of one rank (one
// factor for both where there is one length only), link and delay from those of two ranks. Points of more ranks are
// left to be predicted. Throws UserError where there is no point of one rank. `start` gives the rates of everything
// that the points do not show, and the ratio of linear to attention.
StepRates fit_step_rates(const TransformerConfig& config, std::span<const StepPoint> points, std::string_view exchange,
                         std::size_t element, const StepRates& start);

// The rates of a card by its name: measured for "H200"; for others a part of the data sheet's peak
// (render/card_rates.h) that H200s reach, and PCIe links. None for an unknown card.
std::optional<StepRates> step_rates_of(std::string_view card);

nlohmann::ordered_json to_json(const StepRates& rates);

}  // namespace h3
