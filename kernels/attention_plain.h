// Attention in float32 on the plain units, for any head size up to 256 and any strides: float32 mode, small heads and
// audio. A query row's result depends on its own place in the sequence alone: keys are walked from the first in fixed
// tiles, and keys behind a causal bound add exact zeros.
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

struct AttentionMask {
  float scale = 1;
  bool causal = false;
  std::int64_t first_query_row = 0;  // query row i sees keys 0 .. i + first_query_row
};

// Query head h meets key head h / (query heads / key heads).
cudaError_t attention_plain(const Heads& query, const Heads& key, const Heads& value, const Heads& o,
                            const AttentionMask& mask, cudaStream_t stream);

}  // namespace h3::kernels
