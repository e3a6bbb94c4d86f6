// The language model's rotary table: interleaved M-RoPE, in which each frequency turns with one of a row's three
// positions (spec/text.md 5.4).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compute/tensor.h"
#include "weights/model_config.h"

namespace h3 {

// Fills cos and sin [rows, head_dim / 2] (host, f32 or bf16) for positions[axis][row]. Angles are float32 products;
// cosine and sine are evaluated with full range reduction and rounded to float32, then to the table's dtype.
void fill_text_rope(const TextConfig& config, const std::array<std::vector<std::int32_t>, 3>& positions,
                    const Tensor& cos, const Tensor& sin);

}  // namespace h3
