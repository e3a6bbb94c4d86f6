#include "text/pretokenizer.h"

#include "text/unicode.h"

namespace h3 {
namespace {

bool is_line_end(char32_t c) {
  return c == U'\r' || c == U'\n';
}
bool is_other(char32_t c) {
  return !is_space(c) && !is_letter(c) && !is_number(c);
}
char32_t lower_ascii(char32_t c) {
  return c >= U'A' && c <= U'Z' ? c + 32 : c;
}

// The scanner's view of one text: each rule returns the end of its piece at p, or p where it does not apply. Rules are
// numbered as in spec/text.md 1.4.
class Scanner {
 public:
  explicit Scanner(std::u32string_view text) : text_(text) {}

  std::size_t next(std::size_t p) const {
    for (const auto rule : {&Scanner::contraction, &Scanner::letters, &Scanner::number, &Scanner::others}) {
      if (const std::size_t end = (this->*rule)(p); end > p) return end;
    }
    return spaces(p);
  }

 private:
  template <typename Predicate>
  std::size_t run(std::size_t p, Predicate is_in) const {
    while (p < text_.size() && is_in(text_[p])) ++p;
    return p;
  }

  bool letter_at(std::size_t p) const { return p < text_.size() && is_letter(text_[p]); }

  // 1: 's 't 'm 'd and 're 've 'll in any case; the long s folds to s.
  std::size_t contraction(std::size_t p) const {
    if (text_[p] != U'\'' || p + 1 >= text_.size()) return p;
    const char32_t a = lower_ascii(text_[p + 1]);
    if (a == U's' || a == 0x17f || a == U't' || a == U'm' || a == U'd') return p + 2;
    if (p + 2 >= text_.size()) return p;
    const char32_t b = lower_ascii(text_[p + 2]);
    const bool pair = (a == U'r' && b == U'e') || (a == U'v' && b == U'e') || (a == U'l' && b == U'l');
    return pair ? p + 3 : p;
  }

  // 2: letters, with one character before them that is neither letter, number nor line end.
  std::size_t letters(std::size_t p) const {
    const char32_t c = text_[p];
    if (is_letter(c)) return run(p, is_letter);
    if (is_line_end(c) || is_number(c) || !letter_at(p + 1)) return p;
    return run(p + 1, is_letter);
  }

  // 3: one number character.
  std::size_t number(std::size_t p) const { return is_number(text_[p]) ? p + 1 : p; }

  // 4: an optional space, other characters, then line ends.
  std::size_t others(std::size_t p) const {
    const std::size_t first = text_[p] == U' ' ? p + 1 : p;
    const std::size_t end = run(first, is_other);
    return end > first ? run(end, is_line_end) : p;
  }

  // 5 to 7: white space up to its last line end, or all but its last character where text follows.
  std::size_t spaces(std::size_t p) const {
    const std::size_t end = run(p, is_space);
    for (std::size_t q = end; q > p; --q) {
      if (is_line_end(text_[q - 1])) return q;
    }
    return end == text_.size() || end - p == 1 ? end : end - 1;
  }

  std::u32string_view text_;
};

}  // namespace

std::vector<std::size_t> piece_ends(std::u32string_view text) {
  const Scanner scanner(text);
  std::vector<std::size_t> ends;
  for (std::size_t p = 0; p < text.size();) {
    p = scanner.next(p);
    ends.push_back(p);
  }
  return ends;
}

}  // namespace h3
