#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "scene/utf8.h"
#include "text/byte_symbols.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace h3 {
namespace {

std::int32_t entry_id(const TokenizerFiles& files, const std::string& entry, const std::string& source,
                      const std::string& used_by) {
  const auto it = files.vocabulary.find(entry);
  if (it == files.vocabulary.end()) {
    throw UserError(source, used_by, entry, "the vocabulary has every byte symbol and every symbol of a merge rule");
  }
  return it->second;
}

std::array<std::int32_t, 256> byte_ids(const TokenizerFiles& files, const std::string& source) {
  std::array<std::int32_t, 256> ids{};
  for (std::size_t b = 0; b < 256; ++b) {
    std::string symbol;
    append_utf8(byte_symbols()[b], symbol);
    ids[b] = entry_id(files, symbol, source, fmt::format("byte {}", b));
  }
  return ids;
}

std::vector<Bpe::Rule> rules_of(const TokenizerFiles& files, const std::string& source) {
  std::vector<Bpe::Rule> rules;
  rules.reserve(files.merges.size());
  std::unordered_map<std::string, std::size_t> seen;
  for (const auto& [left, right] : files.merges) {
    const std::string place = fmt::format("merge rule {}", rules.size() + 1);
    if (const auto [it, added] = seen.emplace(left + ' ' + right, rules.size()); !added) {
      throw UserError(source, place, it->first, fmt::format("a rule of its own (rule {} is the same)", it->second + 1));
    }
    rules.push_back({entry_id(files, left, source, place), entry_id(files, right, source, place),
                     entry_id(files, left + right, source, place)});
  }
  return rules;
}

// H3's own tokens follow each other, and in the released vocabulary their ids are known (spec/text.md 1.3). Files that
// give them other ids would make another prompt of the same text.
void check_h3_tokens(const Tokenizer& tokenizer, const TokenizerFiles& files, const std::string& source) {
  constexpr std::size_t kReleasedEntries = 151643;
  constexpr std::int32_t kReleasedFirst = 151669;
  const auto first = tokenizer.added_token("<d>");
  std::int32_t expected = files.vocabulary.size() == kReleasedEntries ? kReleasedFirst : first.value_or(0);
  for (const char* content :
       {"<d>", "</d>", "<|cutoff|>", "<|lyrics_start|>", "<|lyrics_end|>", "<|caption_start|>", "<|caption_end|>"}) {
    const auto id = tokenizer.added_token(content);
    if (!id || *id != expected) {
      throw UserError(source, content, id ? fmt::format("{}", *id) : "no token",
                      fmt::format("the seven tokens from <d> on are added in their order, this one as {}", expected));
    }
    ++expected;
  }
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerFiles& files, const std::string& source) {
  const auto bytes = byte_ids(files, source);
  bpe_ = Bpe(bytes, rules_of(files, source));
  auto size = files.vocabulary.size();
  for (const auto& [content, id] : files.added) size = std::max(size, static_cast<std::size_t>(id) + 1);
  bytes_of_.resize(size);
  for (const auto& [entry, id] : files.vocabulary) {
    // Entries that no rule produces may be any text; they are never encoded, and stand for themselves.
    bytes_of_[static_cast<std::size_t>(id)] = bytes_of_symbols(entry).value_or(entry);
  }
  for (const auto& [content, id] : files.added) {
    bytes_of_[static_cast<std::size_t>(id)] = content;
    added_[static_cast<unsigned char>(content[0])].push_back({content, id});
  }
  for (auto& bucket : added_) {
    std::sort(bucket.begin(), bucket.end(),
              [](const Added& a, const Added& b) { return a.content.size() > b.content.size(); });
  }
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  const TokenizerFiles files = read_tokenizer_files(folder);
  Tokenizer tokenizer(files, folder.string());
  check_h3_tokens(tokenizer, files, folder.string());
  return tokenizer;
}

const Tokenizer::Added* Tokenizer::added_at(std::string_view text) const {
  const auto& bucket = added_[static_cast<unsigned char>(text[0])];
  const auto it =
      std::find_if(bucket.begin(), bucket.end(), [&](const Added& a) { return text.starts_with(a.content); });
  return it == bucket.end() ? nullptr : &*it;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const std::string& field) const {
  if (const auto offset = first_invalid_utf8(text)) {
    throw UserError("", field,
                    fmt::format("byte 0x{:02x} at offset {}", static_cast<unsigned char>(text[*offset]), *offset),
                    "text is UTF-8");
  }
  std::vector<std::int32_t> ids;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Added* token = added_at(text.substr(i));
    if (!token) {
      ++i;
      continue;
    }
    encode_segment(text.substr(begin, i - begin), ids);
    ids.push_back(token->id);
    begin = i += token->content.size();
  }
  encode_segment(text.substr(begin), ids);
  return ids;
}

void Tokenizer::encode_segment(std::string_view segment, std::vector<std::int32_t>& ids) const {
  const std::u32string text = to_nfc(decode_utf8(segment));
  std::string bytes;
  std::size_t begin = 0;
  for (const std::size_t end : piece_ends(text)) {
    bytes.clear();
    for (std::size_t i = begin; i < end; ++i) append_utf8(text[i], bytes);
    bpe_.encode(bytes, ids);
    begin = end;
  }
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    H3_CHECK(id >= 0 && id < size(), fmt::format("token {}", id));
    bytes += bytes_of_[static_cast<std::size_t>(id)];
  }
  return bytes;
}

std::optional<std::int32_t> Tokenizer::added_token(std::string_view content) const {
  if (content.empty()) return std::nullopt;
  const Added* token = added_at(content);
  return token && token->content.size() == content.size() ? std::optional(token->id) : std::nullopt;
}

}  // namespace h3
