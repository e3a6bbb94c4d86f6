// The frequencies of rotary embeddings as PyTorch computes them, for the language model and the vision tower
// (spec/text.md 4.4, 5.4).
#pragma once

#include <cstdint>
#include <vector>

namespace h3 {

// theta^(-i / count) for i = 0 .. count - 1 in float32: exponent, power and reciprocal are each rounded.
std::vector<float> rotary_frequencies(std::int64_t count, double theta);

}  // namespace h3
