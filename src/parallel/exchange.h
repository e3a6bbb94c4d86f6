// How one attention layer's data travels between ranks that own rows and ranks that own heads (spec/dit.md 7.2).
// Rows to heads: either hidden states are gathered and every rank projects its own heads (`all_gather`), or qkv of
// every head is projected where the rows are and sent by head (`all_to_all`). Heads to rows is one all-to-all of the
// outputs. Only bits move; the row ranges may be cut into chunks, which changes nothing but when they move.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compute/operators.h"
#include "parallel/communicator.h"
#include "parallel/shards.h"

namespace h3 {

enum class ExchangePattern : std::uint8_t { all_gather, all_to_all };
std::string_view name_of(ExchangePattern pattern);
// "all-gather", "all-to-all" or "auto": by bytes received a rank, hidden states against qkv (DESIGN "Shards").
// Throws UserError naming --exchange.
ExchangePattern choose_exchange(std::string_view option, int ranks, std::int64_t hidden, std::int64_t inner);

// Bytes a rank receives in one layer, by pattern: rows to heads and heads to rows. From one other rank, and from all.
double exchange_bytes_from(ExchangePattern pattern, const ShardPlan& plan, int rank, int from, std::int64_t hidden,
                           std::int64_t head_dim, std::size_t element);
double exchange_bytes(ExchangePattern pattern, const ShardPlan& plan, int rank, std::int64_t hidden,
                      std::int64_t head_dim, std::size_t element);

class Exchange {
 public:
  // Transfers run in the order of `q`. (On H200s a queue of their own made a step 9 % slower: NCCL's kernels take
  // multiprocessors from the persistent kernels that they are to hide behind.)
  Exchange(Machine& machine, Communicator& communicator, ShardPlan plan, int chunks);
  const ShardPlan& plan() const { return plan_; }
  Range rows() const { return plan_.rows[static_cast<std::size_t>(communicator_.rank())]; }
  Range heads() const { return plan_.heads[static_cast<std::size_t>(communicator_.rank())]; }
  std::int64_t total_rows() const { return plan_.rows.back().end; }
  bool alone() const { return plan_.rows.size() == 1; }

  // Makes `full` [S, w] whole: this rank's rows are in place, the others' arrive. `arrived(range)` is called once for
  // each range of rows that is complete, this rank's own among them.
  void gather_rows(Queue& q, const Tensor& full, const std::function<void(Range)>& arrived);
  // Sends columns of local [r, heads * unit] to the ranks that own those heads; `by_head` [S, own heads * unit]
  // receives all rows. `staging` holds local.elements() elements.
  void rows_to_heads(Queue& q, const Tensor& local, std::int64_t unit, const Tensor& staging, const Tensor& by_head);
  // The way back. `compute(heads, out)` is called for one part of this rank's heads after another (counted from its
  // first) and gives `q` the work that fills out [S, heads * unit]; a part travels while the next one is computed.
  // local [r, all heads * unit] receives everything. `by_head` holds S * own heads * unit elements, `staging`
  // local.elements().
  void heads_to_rows(Queue& q, const std::function<void(Range heads, const Tensor& out)>& compute,
                     const Tensor& by_head, std::int64_t unit, const Tensor& staging, const Tensor& local);

  double seconds() const { return seconds_; }  // host time spent inside transfers so far

 private:
  Range chunk_of(Range range, int chunk) const;
  Tensor columns(const Tensor& t, Range heads, std::int64_t unit) const {
    return t.slice(1, heads.begin * unit, heads.end * unit);
  }

  Machine& machine_;
  Communicator& communicator_;
  ShardPlan plan_;
  int chunks_;
  double seconds_ = 0;
};

}  // namespace h3
