// Byte-pair encoding of one piece (spec/text.md 1.6): the adjacent pair of lowest rank is merged, leftmost first, until
// no pair is a rule. A heap of (rank, position) with stale entries dropped when they surface keeps it O(n log n),
// because a piece can be a whole prompt.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace h3 {

class Bpe {
 public:
  // A merge rule over token ids; its rank is its place in the list.
  struct Rule {
    std::int32_t left = 0, right = 0, merged = 0;
  };

  Bpe() = default;
  // `byte_ids`: the token of each byte. No pair may have two rules.
  Bpe(const std::array<std::int32_t, 256>& byte_ids, std::vector<Rule> rules);

  // Appends the tokens of `bytes`, which are fewer than 2^31.
  void encode(std::string_view bytes, std::vector<std::int32_t>& ids) const;

 private:
  // Two numbers that are not negative as one.
  static std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  }
  struct KeyHash {
    std::size_t operator()(std::uint64_t key) const { return (key ^ (key >> 29)) * 0x9e3779b97f4a7c15u >> 8; }
  };

  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Rule> rules_;
  std::unordered_map<std::uint64_t, std::int32_t, KeyHash> ranks_;
};

}  // namespace h3
