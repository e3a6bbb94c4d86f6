// The printable stand-ins that byte-level vocabularies use for bytes (spec/text.md 1.5): bytes 33-126, 161-172 and
// 174-255 stand for themselves as code points, the other 68 in order for U+0100, U+0101, ...
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace h3 {

// The code point of each byte.
const std::array<char32_t, 256>& byte_symbols();

// The bytes that a vocabulary entry (UTF-8 of byte symbols) stands for; nothing where a character is no byte symbol or
// the entry is not UTF-8.
std::optional<std::string> bytes_of_symbols(std::string_view entry);

}  // namespace h3
