// Cuts a text into the pieces that BPE works on, as Qwen2's regular expression does (spec/text.md 1.4), by a scanner
// that needs no regular expressions: linear, and safe on any code point.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace h3 {

// Ends of the pieces, in order; the last is text.size(). Every code point belongs to one piece.
std::vector<std::size_t> piece_ends(std::u32string_view text);

}  // namespace h3
