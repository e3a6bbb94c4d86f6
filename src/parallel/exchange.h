// How one attention layer's data travels between ranks that own rows and ranks that own heads (spec/dit.md 7.2).
// Rows to heads: either hidden states are gathered and every rank projects its own heads (`all_gather`), or qkv of
// every head is projected where the rows are and sent by head (`all_to_all`). Heads to rows is one all-to-all of the
// outputs. Only bits move; the row ranges may be cut into chunks, which changes nothing but when they move.
#pragma once

#include <functional>
#include <memory>
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
  // Every call of one kind passes the same tensors, so that each transfer is prepared once.
  Exchange(Machine& machine, Communicator& communicator, ShardPlan plan, int chunks);
  const ShardPlan& plan() const { return plan_; }
  Range rows() const { return plan_.rows[own()]; }
  Range heads() const { return plan_.heads[own()]; }
  std::int64_t total_rows() const { return plan_.rows.back().end; }
  bool alone() const { return plan_.rows.size() == 1; }

  // Makes `full` [S, w] whole: this rank's rows are in place, the others' arrive. `arrived(range)` is called once for
  // each range of rows that is complete, first for this rank's own, beside whose work the others travel.
  void gather_rows(Queue& q, const Tensor& full, const std::function<void(Range)>& arrived);
  // Sends columns of local [r, heads * unit] to the ranks that own those heads; `by_head` [S, own heads * unit]
  // receives all rows. `project(range)` is called for one part of this rank's rows after another (counted from its
  // first) and gives `q` the work that fills them; a part travels beside the work on the next. `staging` holds
  // local.elements().
  void rows_to_heads(Queue& q, const std::function<void(Range rows)>& project, const Tensor& local, std::int64_t unit,
                     const Tensor& staging, const Tensor& by_head);
  // The way back. `compute(queue, heads, rows, out)` gives a queue the work that fills out [rows, heads * unit], of
  // which rows may be strided; heads are counted from this rank's first. Rows of other ranks come first, in parts by
  // heads that travel beside the work on what follows; this rank's own rows are computed last and, where transfers run
  // beside the queue, on a queue of their own, so that their kernel starts while the last blocks of the one before
  // still run. local [r, all heads * unit] receives everything. `by_head` holds S * own heads * unit elements,
  // `staging` local.elements().
  using ComputeHeads = std::function<void(Queue& q, Range heads, Range rows, const Tensor& out)>;
  void heads_to_rows(Queue& q, const ComputeHeads& compute, const Tensor& by_head, std::int64_t unit,
                     const Tensor& staging, const Tensor& local);

  double seconds() const { return seconds_; }  // host time spent inside transfers so far

 private:
  // What is sent to and received from each rank in one transfer.
  struct Parts {
    std::vector<Tensor> sends, receives;
  };
  // The transfers of one kind of call, one a chunk, with the part of the staging buffer that is taken.
  struct Prepared {
    std::vector<std::unique_ptr<Transfer>> chunks;
    std::int64_t staged = 0;
  };

  std::size_t own() const { return static_cast<std::size_t>(communicator_.rank()); }
  Range chunk_of(Range range, int chunk) const;
  // The ranges of rows before and behind this rank's own, as far as they are not empty.
  std::vector<Range> other_rows() const;
  Tensor columns(const Tensor& t, Range heads, std::int64_t unit) const {
    return t.slice(1, heads.begin * unit, heads.end * unit);
  }
  // Starts the transfer of one chunk; prepares it from `parts(rank)`, a pair of tensors, at the first call.
  void start(Queue& q, Prepared& prepared, int chunk, const std::function<Parts()>& parts, const Tensor& staging);
  void finish(Queue& q, Prepared& prepared, int chunk);

  Machine& machine_;
  Communicator& communicator_;
  ShardPlan plan_;
  int chunks_;
  double seconds_ = 0;
  std::unique_ptr<Queue> own_rows_queue_;
  Prepared gathering_, to_heads_, to_rows_;
};

}  // namespace h3
