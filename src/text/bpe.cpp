#include "text/bpe.h"

#include <functional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace h3 {
namespace {

constexpr std::int32_t kNone = -1;

// The symbols of a piece as a linked list over positions; a merged-away position holds kNone.
struct Symbols {
  std::vector<std::int32_t> id, previous, next;

  explicit Symbols(std::size_t n) : id(n), previous(n), next(n) {
    for (std::size_t i = 0; i < n; ++i) {
      previous[i] = static_cast<std::int32_t>(i) - 1;
      next[i] = i + 1 < n ? static_cast<std::int32_t>(i) + 1 : kNone;
    }
  }
  std::int32_t& at(std::vector<std::int32_t>& v, std::int32_t i) const { return v[static_cast<std::size_t>(i)]; }
  void merge_with_next(std::int32_t left, std::int32_t merged) {
    const std::int32_t right = at(next, left);
    at(id, left) = merged;
    at(id, right) = kNone;
    at(next, left) = at(next, right);
    if (at(next, left) != kNone) at(previous, at(next, left)) = left;
  }
};

}  // namespace

Bpe::Bpe(const std::array<std::int32_t, 256>& byte_ids, std::vector<Rule> rules)
    : byte_ids_(byte_ids), rules_(std::move(rules)) {
  ranks_.reserve(rules_.size());
  for (std::size_t rank = 0; rank < rules_.size(); ++rank) {
    const auto key = pair_key(rules_[rank].left, rules_[rank].right);
    H3_CHECK(ranks_.emplace(key, static_cast<std::int32_t>(rank)).second, "one rule a pair");
  }
}

void Bpe::encode(std::string_view bytes, std::vector<std::int32_t>& ids) const {
  if (bytes.empty()) return;
  Symbols symbols(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) symbols.id[i] = byte_ids_[static_cast<unsigned char>(bytes[i])];

  const auto rank_at = [&](std::int32_t left) {
    if (left == kNone) return kNone;
    const std::int32_t right = symbols.at(symbols.next, left);
    if (right == kNone) return kNone;
    const auto it = ranks_.find(pair_key(symbols.at(symbols.id, left), symbols.at(symbols.id, right)));
    return it == ranks_.end() ? kNone : it->second;
  };
  // A candidate is its rank and the position of its left symbol in one number, so that the smallest comes first.
  std::vector<std::uint64_t> candidates;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(bytes.size()); ++i) {
    if (const std::int32_t rank = rank_at(i); rank != kNone) candidates.push_back(pair_key(rank, i));
  }
  std::priority_queue heap(std::greater<std::uint64_t>(), std::move(candidates));
  const auto consider = [&](std::int32_t left) {
    if (const std::int32_t rank = rank_at(left); rank != kNone) heap.push(pair_key(rank, left));
  };
  while (!heap.empty()) {
    const std::uint64_t candidate = heap.top();
    heap.pop();
    const auto left = static_cast<std::int32_t>(candidate & 0xffffffffu);
    const Rule& rule = rules_[candidate >> 32];
    const std::int32_t right = symbols.at(symbols.next, left);
    if (symbols.at(symbols.id, left) != rule.left || right == kNone || symbols.at(symbols.id, right) != rule.right) {
      continue;  // stale
    }
    symbols.merge_with_next(left, rule.merged);
    consider(left);
    consider(symbols.at(symbols.previous, left));
  }
  for (std::int32_t i = 0; i != kNone; i = symbols.at(symbols.next, i)) ids.push_back(symbols.at(symbols.id, i));
}

}  // namespace h3
