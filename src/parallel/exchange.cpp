#include "parallel/exchange.h"

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
  if (communicator_.beside_queue()) own_rows_queue_ = machine_.make_queue();
}

Range Exchange::chunk_of(Range range, int chunk) const {
  return {range.begin + range.size() * chunk / chunks_, range.begin + range.size() * (chunk + 1) / chunks_};
}

std::vector<Range> Exchange::other_rows() const {
  std::vector<Range> others;
  for (const Range range : {Range{0, rows().begin}, Range{rows().end, total_rows()}})
    if (range.size() > 0) others.push_back(range);
  return others;
}

void Exchange::start(Queue& q, Prepared& prepared, int chunk, const std::function<Parts()>& parts,
                     const Tensor& staging) {
  if (prepared.chunks.size() == static_cast<std::size_t>(chunk)) {
    const Parts p = parts();
    std::int64_t strided = 0;
    for (const auto* side : {&p.sends, &p.receives})
      for (const Tensor& t : *side) strided += t.contiguous() ? 0 : t.elements();
    const Tensor room = strided == 0 ? staging : staging.slice(0, prepared.staged, prepared.staged + strided);
    prepared.staged += strided;
    prepared.chunks.push_back(communicator_.prepare(machine_.operators(), p.sends, p.receives, room));
  }
  Stopwatch watch(seconds_);
  prepared.chunks[static_cast<std::size_t>(chunk)]->start(q);
}

void Exchange::finish(Queue& q, Prepared& prepared, int chunk) {
  Stopwatch watch(seconds_);
  prepared.chunks[static_cast<std::size_t>(chunk)]->finish(q);
}

void Exchange::gather_rows(Queue& q, const Tensor& full, const std::function<void(Range)>& arrived) {
  if (alone()) return arrived(rows());
  const auto part = [&](std::size_t rank, int c) {
    const Range range = chunk_of(plan_.rows[rank], c);
    return full.rows(range.begin, range.end);
  };
  for (int c = 0; c < chunks_; ++c)
    start(q, gathering_, c,
          [&] {
            Parts p;
            for (std::size_t r = 0; r < plan_.rows.size(); ++r) {
              p.sends.push_back(part(own(), c));
              p.receives.push_back(part(r, c));
            }
            return p;
          },
          {});
  if (rows().size() > 0) arrived(rows());
  for (int c = 0; c < chunks_; ++c) {
    finish(q, gathering_, c);
    for (std::size_t r = 0; r < plan_.rows.size(); ++r) {
      const Range range = chunk_of(plan_.rows[r], c);
      if (r != own() && range.size() > 0) arrived(range);
    }
  }
}

void Exchange::rows_to_heads(Queue& q, const std::function<void(Range)>& project, const Tensor& local,
                             std::int64_t unit, const Tensor& staging, const Tensor& by_head) {
  Operators& ops = machine_.operators();
  for (int c = 0; c < chunks_; ++c) {
    const Range mine = chunk_of({0, local.size(0)}, c);
    if (mine.size() > 0) project(mine);
    const auto parts = [&] {
      Parts p;
      for (std::size_t r = 0; r < plan_.rows.size(); ++r) {
        const Range theirs = chunk_of(plan_.rows[r], c);
        p.receives.push_back(by_head.rows(theirs.begin, theirs.end));
        p.sends.push_back(r == own() ? p.receives[r] : columns(local.rows(mine.begin, mine.end), plan_.heads[r], unit));
      }
      return p;
    };
    start(q, to_heads_, c, parts, staging);
  }
  if (rows().size() * heads().size() > 0)
    ops.copy_rows(q, columns(local, heads(), unit), by_head.rows(rows().begin, rows().end));
  for (int c = 0; c < chunks_; ++c) finish(q, to_heads_, c);
}

void Exchange::heads_to_rows(Queue& q, const ComputeHeads& compute, const Tensor& by_head, std::int64_t unit,
                             const Tensor& staging, const Tensor& local) {
  const Range all_heads{0, heads().size()};
  if (alone()) return compute(q, all_heads, rows(), local);
  const Tensor flat = by_head.reshape({by_head.elements()});
  const std::vector<Range> others = other_rows();
  // Attention beside transfers in queue order would only lose time: NCCL's kernels take multiprocessors from it.
  Queue& own_rows = own_rows_queue_ ? *own_rows_queue_ : q;
  for (int c = 0; c < chunks_; ++c) {
    const Range part = chunk_of(all_heads, c);
    const std::int64_t begin = part.begin * unit * total_rows(), width = part.size() * unit;
    const Tensor out = flat.slice(0, begin, begin + total_rows() * width).reshape({total_rows(), width});
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (c + 1 == chunks_ && i + 1 == others.size()) own_rows.wait_for(q);
      if (part.size() > 0) compute(q, part, others[i], out.rows(others[i].begin, others[i].end));
    }
    const auto parts = [&] {
      Parts p;
      for (std::size_t r = 0; r < plan_.rows.size(); ++r) {
        p.sends.push_back(out.rows(plan_.rows[r].begin, plan_.rows[r].end));
        p.receives.push_back(r == own() ? p.sends[r] : columns(local, chunk_of(plan_.heads[r], c), unit));
      }
      return p;
    };
    start(q, to_rows_, c, parts, staging);
  }
  if (others.empty()) own_rows.wait_for(q);
  if (rows().size() * heads().size() > 0) compute(own_rows, all_heads, rows(), columns(local, heads(), unit));
  q.wait_for(own_rows);
  for (int c = 0; c < chunks_; ++c) finish(q, to_rows_, c);
}

}  // namespace h3
