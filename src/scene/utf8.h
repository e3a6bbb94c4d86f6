// Strict UTF-8: what a scene file may hold. Invalid text is refused and never repaired, because a repaired prompt
// would be another prompt.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace h3 {

// The offset of the first byte that starts no valid sequence (surrogates, overlong forms and code points above
// U+10FFFF are invalid), or nothing where all of `text` is UTF-8 (spec/text.md 1.8).
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// `text` for messages: at most `most` characters, control characters and invalid bytes as \xNN.
std::string printable(std::string_view text, std::size_t most = 80);

}  // namespace h3
