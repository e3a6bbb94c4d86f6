// What a tokenizer's files say, checked: vocabulary, merge rules, added tokens (spec/text.md 1.1, 1.3).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace h3 {

struct TokenizerFiles {
  std::unordered_map<std::string, std::int32_t> vocabulary;  // entries in byte symbols; ids 0 .. size - 1
  std::vector<std::pair<std::string, std::string>> merges;   // by rank
  std::vector<std::pair<std::string, std::int32_t>> added;   // text as typed, id
};

// Reads vocab.json and merges.txt of `folder`, or tokenizer.json where one of the two is missing, and
// tokenizer_config.json, from which added_tokens_decoder gives ids and additional_special_tokens the next free ones in
// order. Throws UserError naming file and place.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

}  // namespace h3
