// One layer of the language model over the rows and output features that this rank owns (spec/text.md 5.3). What other
// ranks computed arrives by gathers after each matrix (sharded by outputs) or before attention (sharded by rows); the
// layer's arithmetic is the same, and so are its bits.
#pragma once

#include <string>

#include "parallel/gather.h"
#include "parallel/solo_communicator.h"
#include "text/text_shards.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

// The buffers of one rank, for any layer.
struct TextWorkspace {
  std::int64_t chunk = 0;     // rows that the widest buffers hold
  Tensor cos, sin;            // own rows [m, d / 2]
  Tensor hidden;              // own rows [m, hidden]: normed input, then what joins the residual stream
  Tensor query, attended;     // own rows, own heads [m, heads * d]
  Tensor key, value;          // all rows, own groups [S, groups * d]
  Tensor own_key, own_value;  // own rows of those; the same memory where all rows are own
  Tensor gate_up;             // own features [chunk, 2 * ffn]
  Tensor full;                // all features [chunk, max(heads * d, ffn)]
  Tensor scratch;             // what gathers need
};
TextWorkspace take_text_workspace(Arena& arena, const TextConfig& config, const TextShards& shards, int rank,
                                  std::int64_t row_chunk, DType dtype);

// A layer's slices that this rank reads, under the names below `layers.N.`.
WeightSet text_layer_weights(const WeightSet& weights, std::int64_t layer, const TextShards& shards,
                             const TextConfig& config, int rank);

class TextLayer {
 public:
  TextLayer(Machine& machine, Communicator& communicator, const TextConfig& config, const TextShards& shards,
            const TextWorkspace& workspace);
  // x [m, hidden], own rows, updated in place. `weights` from text_layer_weights, at Machine::place().
  void run(Queue& q, const WeightSet& weights, const Tensor& x) const;

 private:
  void project(Queue& q, const WeightSet& w, const Tensor& x) const;
  void norm_and_rotate(Queue& q, const Tensor& weight, const Tensor& rows, std::int64_t heads) const;
  void attend(Queue& q) const;
  void add_attention(Queue& q, const WeightSet& w, const Tensor& x) const;
  void add_mlp(Queue& q, const WeightSet& w, const Tensor& x) const;

  Operators& operators_;
  Communicator& communicator_;
  const TextConfig& config_;
  const TextShards& shards_;
  const TextWorkspace& ws_;
  std::size_t rank_;
  SoloCommunicator solo_;
  // Sharded by rows every rank owns all features, so these gathers have a world of one.
  ColumnGather heads_, hidden_, ffn_;
};

}  // namespace h3
