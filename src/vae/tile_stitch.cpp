#include "vae/tile_stitch.h"

namespace h3 {

namespace {

Tensor strip(Arena& arena, std::int64_t planes, std::int64_t rows, std::int64_t columns) {
  return arena.take({planes, rows, columns}, DType::f32);
}

}  // namespace

std::size_t TileStitcher::strip_bytes(const TilePlan& plan, std::int64_t planes) {
  Arena counted;
  for (std::int64_t i = 0; i < 2 * plan.x.count(); ++i) strip(counted, planes, plan.y.largest_overlap(), plan.x.tile);
  for (int i = 0; i < 2; ++i) strip(counted, planes, plan.y.tile, plan.x.largest_overlap());
  return counted.peak();
}

TileStitcher::TileStitcher(Machine& machine, const TilePlan& plan, std::int64_t planes)
    : operators_(machine.operators()), plan_(plan), planes_(planes) {
  const std::size_t bytes = strip_bytes(plan, planes);
  if (bytes == 0) return;
  arena_ = Arena(machine, bytes);
  below_.resize(static_cast<std::size_t>(plan.x.count()));
  for (StripPair& pair : below_)
    for (Tensor& t : pair) t = strip(arena_, planes, plan.y.largest_overlap(), plan.x.tile);
  for (Tensor& t : right_) t = strip(arena_, planes, plan.y.tile, plan.x.largest_overlap());
}

void TileStitcher::start(const Tensor& canvas) {
  H3_CHECK(canvas.contiguous());
  CHECK_EQ(canvas.elements(), planes_ * plan_.y.length * plan_.x.length);
  canvas_ = canvas.reshape({planes_, plan_.y.length, plan_.x.length});
  next_ = 0;
}

// The first `size` rows or columns of a strip buffer, as a contiguous [planes, rows, columns].
static Tensor cut(const Tensor& buffer, std::int64_t rows, std::int64_t columns) {
  return Tensor(buffer.data, {buffer.size(0), rows, columns}, buffer.dtype, buffer.place);
}

void TileStitcher::keep_strips(Queue& q, const Tensor& tile, std::int64_t row, std::int64_t column) {
  const std::int64_t h = plan_.y.tile, w = plan_.x.tile;
  if (const std::int64_t overlap = plan_.y.after(row); overlap > 0)
    operators_.copy_rows(q, tile.slice(1, h - overlap, h),
                         cut(below_[static_cast<std::size_t>(column)][row & 1], overlap, w));
  if (const std::int64_t overlap = plan_.x.after(column); overlap > 0)
    operators_.copy_rows(q, tile.slice(2, w - overlap, w), cut(right_[column & 1], h, overlap));
}

void TileStitcher::place(Queue& q, const Tensor& tile, std::int64_t row, std::int64_t column) {
  const std::int64_t h = plan_.y.kept(row), w = plan_.x.kept(column);
  const std::int64_t y = plan_.y.start(row), x = plan_.x.start(column);
  operators_.copy_rows(q, tile.slice(1, 0, h).slice(2, 0, w), canvas_.slice(1, y, y + h).slice(2, x, x + w));
}

void TileStitcher::add(Queue& q, const Tensor& tile) {
  CHECK_LT(next_, plan_.count());
  const std::int64_t row = plan_.row(next_), column = plan_.column(next_);
  ++next_;
  const Tensor raw = tile.reshape({planes_, plan_.y.tile, plan_.x.tile});
  keep_strips(q, raw, row, column);
  if (const std::int64_t overlap = plan_.y.before(row); overlap > 0)
    operators_.cross_fade(q, cut(below_[static_cast<std::size_t>(column)][(row - 1) & 1], overlap, plan_.x.tile), 1,
                          raw.slice(1, 0, overlap));
  if (const std::int64_t overlap = plan_.x.before(column); overlap > 0)
    operators_.cross_fade(q, cut(right_[(column - 1) & 1], plan_.y.tile, overlap), 2, raw.slice(2, 0, overlap));
  place(q, raw, row, column);
}

}  // namespace h3
