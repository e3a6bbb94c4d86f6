// One transformer block over the rows this rank owns (spec/dit.md 4.7). Everything is row-local but attention, before
// and after which the exchange turns "my rows, all heads" into "all rows, my heads" and back. Rows pass through the
// linear layers in chunks, so that the widest buffers do not grow with the clip; no chunk size changes a bit.
#pragma once

#include "parallel/exchange.h"
#include "transformer/modulation.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

// The buffers of a block, carved from an arena in which later phases reuse the memory of earlier ones.
struct BlockWorkspace {
  std::int64_t chunk = 0;                // rows a linear layer takes at once
  Tensor hidden;                         // modulated input: [S, hidden] where it is gathered, else one chunk
  Tensor qkv_rows;                       // own rows, all heads [r, heads * 3 * d]; only for the all-to-all pattern
  Tensor qkv_heads;                      // all rows, own heads [S, own heads * 3 * d]
  Tensor staging;                        // one contiguous block a peer
  Tensor attended_heads;                 // all rows, own heads [S, own heads * d]
  Tensor attended_rows;                  // own rows, all heads [r, heads * d]
  Tensor projected;                      // one chunk [chunk, hidden]
  Tensor mlp_hidden, mlp_up, mlp_gated;  // one chunk each
};

// Takes the workspace of one rank from `arena` (or, without memory, adds up what it would take). `row_chunk` 0 chooses.
BlockWorkspace take_block_workspace(Arena& arena, const TransformerConfig& config, const ShardPlan& plan, int rank,
                                    ExchangePattern pattern, std::int64_t row_chunk, DType dtype);

// What all blocks of one clip share.
struct BlockContext {
  Machine& machine;
  Exchange& exchange;
  const TransformerConfig& config;
  ExchangePattern pattern;
  BlockWorkspace workspace;
  Tensor cos, sin;          // rotary table of all rows [S, 3 * rope_freqs]
  Tensor modulation_index;  // class of each own row [r] int32
};

// The weights of block `layer` that a rank with these heads reads: with all-gather its heads' rows of qkv alone.
WeightSet block_weights(const WeightSet& weights, std::int64_t layer, const TransformerConfig& config, Range heads,
                        ExchangePattern pattern);

// x [r, hidden] is updated in place.
void run_block(Queue& q, const BlockContext& context, const WeightSet& weights,
               const ModulationTables::Block& modulation, const Tensor& x);

// q, k and v of heads as views [rows, heads, d] of a fused buffer [rows, heads * 3 * d].
struct QkvViews {
  Tensor q, k, v;
};
QkvViews qkv_views(const Tensor& fused, std::int64_t head_dim);

}  // namespace h3
