#include "parallel/gather.h"

#include <utility>

namespace h3 {
namespace {

// `rows` x `columns` elements of a scratch tensor of any shape, from its element `at` on.
Tensor carve(const Tensor& scratch, std::int64_t at, std::int64_t rows, std::int64_t columns) {
  const Tensor flat = scratch.reshape({scratch.elements()});
  return flat.slice(0, at, at + rows * columns).reshape({rows, columns});
}

void copy_part(Queue& q, Operators& operators, const Tensor& from, const Tensor& to) {
  if (from.elements() > 0 && from.data != to.data) operators.copy_rows(q, from, to);
}

}  // namespace

ColumnGather::ColumnGather(Communicator& communicator, Operators& operators, std::vector<Range> columns)
    : communicator_(communicator), operators_(operators), columns_(std::move(columns)) {
  CHECK_EQ(columns_.size(), static_cast<std::size_t>(communicator.size()));
}

std::vector<Tensor> ColumnGather::blocks(std::int64_t rows, const Tensor& scratch) const {
  std::vector<Tensor> out;
  for (const Range& c : columns_) out.push_back(carve(scratch, rows * c.begin, rows, c.size()));
  return out;
}

Tensor ColumnGather::part(const Tensor& out, const Tensor& scratch) const {
  const std::int64_t rows = out.size(0);
  return own().size() == width() ? out : carve(scratch, rows * own().begin, rows, own().size());
}

void ColumnGather::gather(Queue& q, const Tensor& out, const Tensor& scratch) const {
  gather(q, part(out, scratch), out, scratch);
}

void ColumnGather::gather(Queue& q, const Tensor& part, const Tensor& out, const Tensor& scratch) const {
  CHECK_EQ(part.size(0), out.size(0));
  CHECK_EQ(part.size(1), own().size());
  CHECK_EQ(out.size(1), width());
  if (communicator_.size() == 1) return copy_part(q, operators_, part, out);
  std::vector<Tensor> from = blocks(out.size(0), scratch);
  from[static_cast<std::size_t>(communicator_.rank())] = part;
  communicator_.all_gather(q, from);
  for (std::size_t r = 0; r < from.size(); ++r) {
    copy_part(q, operators_, from[r], out.slice(1, columns_[r].begin, columns_[r].end));
  }
}

void gather_row_tiles(Queue& q, Operators& operators, Communicator& communicator,
                      std::span<const std::vector<Range>> tiles, const Tensor& local, const Tensor& scratch,
                      const Tensor& out) {
  CHECK_EQ(tiles.size(), static_cast<std::size_t>(communicator.size()));
  const auto rows_of = [](const std::vector<Range>& list) {
    std::int64_t rows = 0;
    for (const Range& t : list) rows += t.size();
    return rows;
  };
  const std::int64_t width = out.size(1);
  std::vector<Tensor> blocks;
  std::int64_t at = 0;
  for (const auto& list : tiles) {
    const std::int64_t rows = rows_of(list);
    const bool own = blocks.size() == static_cast<std::size_t>(communicator.rank());
    blocks.push_back(own ? local : carve(scratch, at * width, rows, width));
    CHECK_EQ(blocks.back().size(0), rows);
    at += rows;
  }
  CHECK_EQ(at, out.size(0));
  communicator.all_gather(q, blocks);
  for (std::size_t r = 0; r < blocks.size(); ++r) {
    std::int64_t row = 0;
    for (const Range& t : tiles[r]) {
      copy_part(q, operators, blocks[r].rows(row, row + t.size()), out.rows(t.begin, t.end));
      row += t.size();
    }
  }
}

}  // namespace h3
