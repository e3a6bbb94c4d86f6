// The little of Unicode that the tokenizer needs: code points of UTF-8 (scene/utf8.h tells what is valid), canonical
// composition (NFC), and the three character classes of its pre-tokeniser. Data comes from utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace h3 {

// Code points of valid UTF-8.
std::u32string decode_utf8(std::string_view text);
void append_utf8(char32_t c, std::string& out);

// Normalization form C. Linear in the length, also for long runs of combining marks.
std::u32string to_nfc(std::u32string text);

bool is_letter(char32_t c);  // general category L*
bool is_number(char32_t c);  // general category N*
bool is_space(char32_t c);   // property White_Space

}  // namespace h3
