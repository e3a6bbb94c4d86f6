// The rotary table: cosine and sine of every row's angles, computed once for a request (spec/dit.md 4.3). It is
// row-local, so a rank fills the rows it needs and gets the bits of the whole table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/tensor.h"
#include "transformer/positions.h"

namespace h3 {

// 1 / theta^(i / freqs) for i = 0 .. freqs - 1, the power and its reciprocal each rounded to float32.
std::vector<float> inverse_frequencies(std::int64_t freqs, double theta);

// Fills cos and sin [rows, 3 freqs], host tensors of f32, bf16 or f16 to which the values are rounded, for the
// positions of the same rows. Angles are float32 products, time's first, then height's and width's; rows may be
// strided.
void fill_rotary_table(std::span<const Position> positions, std::span<const float> inverse_frequencies,
                       const Tensor& cos, const Tensor& sin);

}  // namespace h3
