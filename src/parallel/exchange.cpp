#include "parallel/exchange.h"

#include <array>
#include <chrono>

namespace h3 {

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

std::string_view name_of(ExchangePattern pattern) {
  return pattern == ExchangePattern::all_gather ? "all-gather" : "all-to-all";
}

ExchangePattern choose_exchange(std::string_view option, int ranks, std::int64_t hidden, std::int64_t inner) {
  if (option == "all-gather") return ExchangePattern::all_gather;
  if (option == "all-to-all") return ExchangePattern::all_to_all;
  if (option != "auto") throw UserError("--exchange", "", std::string(option), "all-gather, all-to-all or auto");
  // With equal shares a rank receives (1 - 1/P) S H values by all-gather, and (1 - 1/P) S 3 I / P by all-to-all.
  return 3 * inner < hidden * ranks ? ExchangePattern::all_to_all : ExchangePattern::all_gather;
}

double exchange_bytes_from(ExchangePattern pattern, const ShardPlan& plan, int rank, int from, std::int64_t hidden,
                           std::int64_t head_dim, std::size_t element) {
  if (rank == from) return 0;
  const auto r = static_cast<std::size_t>(rank), f = static_cast<std::size_t>(from);
  const double rows = static_cast<double>(plan.rows[r].size()), heads = static_cast<double>(plan.heads[r].size());
  const double their_rows = static_cast<double>(plan.rows[f].size()),
               their_heads = static_cast<double>(plan.heads[f].size());
  const double d = static_cast<double>(head_dim);
  const double in = pattern == ExchangePattern::all_gather ? (heads > 0 ? their_rows * static_cast<double>(hidden) : 0)
                                                           : their_rows * heads * 3 * d;
  return (in + rows * their_heads * d) * static_cast<double>(element);
}

double exchange_bytes(ExchangePattern pattern, const ShardPlan& plan, int rank, std::int64_t hidden,
                      std::int64_t head_dim, std::size_t element) {
  double bytes = 0;
  for (int from = 0; from < static_cast<int>(plan.rows.size()); ++from)
    bytes += exchange_bytes_from(pattern, plan, rank, from, hidden, head_dim, element);
  return bytes;
}

Exchange::Exchange(Machine& machine, Communicator& communicator, ShardPlan plan, int chunks)
    : machine_(machine), communicator_(communicator), plan_(std::move(plan)), chunks_(chunks) {
  CHECK_EQ(plan_.rows.size(), static_cast<std::size_t>(communicator.size()));
  CHECK_EQ(plan_.heads.size(), plan_.rows.size());
  CHECK_GE(chunks_, 1);
}

Range Exchange::chunk_of(Range range, int chunk) const {
  return {range.begin + range.size() * chunk / chunks_, range.begin + range.size() * (chunk + 1) / chunks_};
}

void Exchange::gather_rows(Queue& q, const Tensor& full, const std::function<void(Range)>& arrived) {
  if (alone()) return arrived(rows());
  std::vector<Tensor> blocks(plan_.rows.size());
  for (int c = 0; c < chunks_; ++c) {
    for (std::size_t r = 0; r < blocks.size(); ++r) {
      const Range range = chunk_of(plan_.rows[r], c);
      blocks[r] = full.rows(range.begin, range.end);
    }
    {
      Stopwatch watch(seconds_);
      communicator_.all_gather(q, blocks);
    }
    for (const Range& owned : plan_.rows) {
      const Range range = chunk_of(owned, c);
      if (range.size() > 0) arrived(range);
    }
  }
}

void Exchange::rows_to_heads(Queue& q, const Tensor& local, std::int64_t unit, const Tensor& staging,
                             const Tensor& by_head) {
  Operators& ops = machine_.operators();
  const auto ranks = plan_.rows.size();
  if (alone()) return ops.copy_rows(q, local, by_head);
  std::vector<Tensor> sends(ranks), receives(ranks);
  for (int c = 0; c < chunks_; ++c) {
    const Range mine = chunk_of({0, local.size(0)}, c);
    const Tensor part = local.rows(mine.begin, mine.end);
    std::int64_t at = mine.begin * local.size(1);
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::int64_t width = plan_.heads[r].size() * unit;
      sends[r] = staging.slice(0, at, at + mine.size() * width).reshape({mine.size(), width});
      at += mine.size() * width;
      if (sends[r].elements() > 0) ops.copy_rows(q, columns(part, plan_.heads[r], unit), sends[r]);
      const Range theirs = chunk_of(plan_.rows[r], c);
      receives[r] = by_head.rows(theirs.begin, theirs.end);
    }
    Stopwatch watch(seconds_);
    communicator_.all_to_all(q, sends, receives);
  }
}

void Exchange::heads_to_rows(Queue& q, const std::function<void(Range, const Tensor&)>& compute, const Tensor& by_head,
                             std::int64_t unit, const Tensor& staging, const Tensor& local) {
  if (alone()) return compute({0, heads().size()}, local);
  struct Arrival {
    Tensor block;
    Range heads;
  };
  std::vector<Arrival> arrivals;
  const auto ranks = plan_.rows.size(), own = static_cast<std::size_t>(communicator_.rank());
  const Range mine = rows();
  std::vector<Tensor> sends(ranks), receives(ranks);
  std::int64_t computed = 0, received = 0;
  const Tensor flat = by_head.reshape({by_head.elements()});
  for (int c = 0; c < chunks_; ++c) {
    const Range part = chunk_of({0, heads().size()}, c);
    const std::int64_t width = part.size() * unit, elements = total_rows() * width;
    const Tensor out = flat.slice(0, computed, computed + elements).reshape({total_rows(), width});
    computed += elements;
    if (part.size() > 0) compute(part, out);
    for (std::size_t r = 0; r < ranks; ++r) {
      sends[r] = out.rows(plan_.rows[r].begin, plan_.rows[r].end);
      const Range theirs = chunk_of(plan_.heads[r], c);
      const std::int64_t block = mine.size() * theirs.size() * unit;
      // This rank's own part needs no transfer.
      receives[r] = r == own
                        ? sends[r]
                        : staging.slice(0, received, received + block).reshape({mine.size(), theirs.size() * unit});
      received += r == own ? 0 : block;
      if (receives[r].elements() > 0) arrivals.push_back({receives[r], theirs});
    }
    Stopwatch watch(seconds_);
    communicator_.all_to_all(q, sends, receives);
  }
  for (const Arrival& a : arrivals) machine_.operators().copy_rows(q, a.block, columns(local, a.heads, unit));
}

}  // namespace h3
