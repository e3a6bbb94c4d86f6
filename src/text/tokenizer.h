// Qwen2's tokenizer (spec/text.md 1): added tokens are cut out literally, the text between them is composed (NFC), cut
// into pieces and encoded by byte-level BPE. Nothing is added in front or behind, stripped, or cut off.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/bpe.h"
#include "text/tokenizer_files.h"

namespace h3 {

class Tokenizer {
 public:
  // Throws UserError naming `source` where vocabulary and rules do not fit together.
  Tokenizer(const TokenizerFiles& files, const std::string& source);
  // Reads a model's tokenizer folder (text/tokenizer_files.h); throws UserError also where H3's own tokens are missing
  // or have other ids than the model learned.
  static Tokenizer load(const std::filesystem::path& folder);

  // Tokens of a text, byte for byte as given. Throws UserError with `field` and the byte offset where the text is not
  // UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, const std::string& field = "prompt") const;
  // The bytes that tokens stand for; ids are those of `size()`.
  std::string decode(std::span<const std::int32_t> ids) const;

  // The id of an added token such as "<|image_pad|>".
  std::optional<std::int32_t> added_token(std::string_view content) const;
  // One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(bytes_of_.size()); }

 private:
  struct Added {
    std::string content;
    std::int32_t id;
  };
  const Added* added_at(std::string_view text) const;
  void encode_segment(std::string_view segment, std::vector<std::int32_t>& ids) const;

  std::array<std::vector<Added>, 256> added_;  // by first byte, longest first
  std::vector<std::string> bytes_of_;          // by id
  Bpe bpe_;
};

}  // namespace h3
