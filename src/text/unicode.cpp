#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/error.h"

namespace h3 {
namespace {

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

std::vector<utf8proc_int32_t> decompose(const std::u32string& text) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  std::array<utf8proc_int32_t, 32> parts;  // the longest canonical decomposition has four code points
  for (const char32_t c : text) {
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(), kOptions, nullptr);
    H3_CHECK(n > 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()), "utf8proc_decompose_char");
    out.insert(out.end(), parts.begin(), parts.begin() + n);
  }
  return out;
}

// Canonical ordering: every run of combining marks sorted by class, equal classes in their order.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto class_of = [](utf8proc_int32_t c) { return combining_class(static_cast<char32_t>(c)); };
  auto begin = text.begin();
  while (begin != text.end()) {
    begin = std::find_if(begin, text.end(), [&](auto c) { return class_of(c) != 0; });
    const auto end = std::find_if(begin, text.end(), [&](auto c) { return class_of(c) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return class_of(a) < class_of(b); });
    begin = end;
  }
}

// Composes ordered code points and appends them.
void compose(std::span<utf8proc_int32_t> points, std::u32string& out) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto n = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kOptions);
  H3_CHECK(n >= 0, "utf8proc_normalize_utf32");
  out.append(points.begin(), points.begin() + n);
}

// U+11A7 stands just before the Hangul trailing consonants, is none, and composes with nothing; utf8proc 2.8 takes it
// for one and drops it. Cutting the text in front of it keeps it.
constexpr utf8proc_int32_t kTrailingBase = 0x11a7;

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t c = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t k = 1; k < length; ++k) c = (c << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
    out.push_back(c);
    i += length;
  }
  return out;
}

void append_utf8(char32_t c, std::string& out) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  out.append(bytes.begin(), bytes.begin() + n);
}

std::u32string to_nfc(std::u32string text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
  if (ascii) return text;
  std::vector<utf8proc_int32_t> points = decompose(text);
  order_marks(points);
  std::u32string out;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find(begin + 1, points.end(), kTrailingBase);
    compose({begin, end}, out);
    begin = end;
  }
  return out;
}

bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

}  // namespace h3
