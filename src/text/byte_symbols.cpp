#include "text/byte_symbols.h"

#include <unordered_map>

#include "scene/utf8.h"
#include "text/unicode.h"

namespace h3 {
namespace {

std::array<char32_t, 256> make_symbols() {
  std::array<char32_t, 256> symbols{};
  char32_t spare = 0x100;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    symbols[b] = printable ? b : spare++;
  }
  return symbols;
}

}  // namespace

const std::array<char32_t, 256>& byte_symbols() {
  static const std::array<char32_t, 256> symbols = make_symbols();
  return symbols;
}

std::optional<std::string> bytes_of_symbols(std::string_view entry) {
  static const auto bytes = [] {
    std::unordered_map<char32_t, char> map;
    for (std::size_t b = 0; b < 256; ++b) map[byte_symbols()[b]] = static_cast<char>(b);
    return map;
  }();
  if (first_invalid_utf8(entry)) return std::nullopt;
  std::string out;
  for (const char32_t c : decode_utf8(entry)) {
    const auto it = bytes.find(c);
    if (it == bytes.end()) return std::nullopt;
    out.push_back(it->second);
  }
  return out;
}

}  // namespace h3
