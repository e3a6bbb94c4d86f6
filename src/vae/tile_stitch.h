// Puts the tiles of a canvas together (spec/vae.md 9.2): each tile is cross-faded with the raw tile above and then with
// the raw tile to its left, and all but its overlap with the next tiles is placed. Tiles come one at a time, in order;
// of those before only the raw strips that later tiles still need are kept.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "vae/tile_plan.h"

namespace h3 {

class TileStitcher {
 public:
  // Tiles and canvas have `planes` planes (channels times frames); `plan` counts in samples of a plane. The memory of
  // the strips is allocated here; see `strip_bytes`.
  TileStitcher(Machine& machine, const TilePlan& plan, std::int64_t planes);
  static std::size_t strip_bytes(const TilePlan& plan, std::int64_t planes);

  // Starts over with tile 0; the canvas [planes, height, width] f32 is contiguous.
  void start(const Tensor& canvas);
  // The next tile, [planes, tile height, tile width] f32 contiguous; overwritten.
  void add(Queue& q, const Tensor& tile);
  std::int64_t added() const { return next_; }
  bool complete() const { return next_ == plan_.count(); }

 private:
  using StripPair = std::array<Tensor, 2>;
  void keep_strips(Queue& q, const Tensor& tile, std::int64_t row, std::int64_t column);
  void place(Queue& q, const Tensor& tile, std::int64_t row, std::int64_t column);

  Operators& operators_;
  TilePlan plan_;
  std::int64_t planes_;
  Arena arena_;
  // A tile's own strips are taken while its neighbour's are still needed, hence two of each, by parity.
  std::vector<StripPair> below_;  // by column: the bottom of a tile, by parity of its row
  StripPair right_;               // the right side of a tile, by parity of its column
  Tensor canvas_;
  std::int64_t next_ = 0;
};

}  // namespace h3
