// Gathers that end in one matrix: parts that ranks computed by columns (output features) or by tiles of rows arrive as
// one contiguous block a rank and are copied to their places. Only bits move (spec/text.md 6.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/operators.h"
#include "parallel/communicator.h"
#include "parallel/shards.h"

namespace h3 {

// The columns of a matrix dealt to ranks, in rank order and covering it; a rank may own none.
class ColumnGather {
 public:
  ColumnGather(Communicator& communicator, Operators& operators, std::vector<Range> columns);

  const Range& own() const { return columns_[static_cast<std::size_t>(communicator_.rank())]; }
  std::int64_t width() const { return columns_.back().end; }
  // Where this rank puts its part [m, own().size()] of out [m, width]: in `out` itself where it owns every column, else
  // in scratch [>= m * width elements].
  Tensor part(const Tensor& out, const Tensor& scratch) const;
  // Fills out [m, width] on every rank; this rank's columns are in part(out, scratch). Every rank calls with the same
  // m.
  void gather(Queue& q, const Tensor& out, const Tensor& scratch) const;
  // The same with this rank's part somewhere else, contiguous.
  void gather(Queue& q, const Tensor& part, const Tensor& out, const Tensor& scratch) const;

 private:
  std::vector<Tensor> blocks(std::int64_t rows, const Tensor& scratch) const;

  Communicator& communicator_;
  Operators& operators_;
  std::vector<Range> columns_;
};

// Fills out [S, w] on every rank from rows that ranks own in tiles: local [own rows, w] holds this rank's tiles one
// after another, contiguous. scratch holds S * w elements. tiles[r] are rank r's, ascending; together they cover [0,
// S).
void gather_row_tiles(Queue& q, Operators& operators, Communicator& communicator,
                      std::span<const std::vector<Range>> tiles, const Tensor& local, const Tensor& scratch,
                      const Tensor& out);

}  // namespace h3
