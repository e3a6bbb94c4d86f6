// The work of an autoencoder over ranks (spec/vae.md 12.1). The unit is a group of tiles of one piece (a chunk to
// decode, or a clip to encode); units are numbered piece by piece and dealt to ranks in contiguous blocks by their
// shares. The rank of a piece's first unit owns the piece: it stitches the tiles. What a unit computes depends on the
// canvas alone, never on the ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/shards.h"

namespace h3 {

struct WorkUnit {
  std::int64_t piece = 0;
  Range tiles;
};

class WorkPlan {
 public:
  // `group` tiles a unit, the last unit of a piece may have fewer; one share a rank.
  WorkPlan(std::int64_t pieces, std::int64_t tiles, std::int64_t group, std::span<const double> shares);

  std::int64_t pieces() const { return pieces_; }
  std::int64_t units_per_piece() const { return units_per_piece_; }
  std::int64_t units() const { return pieces_ * units_per_piece_; }
  WorkUnit unit(std::int64_t u) const;
  // Units of a rank, of a piece.
  Range units_of_rank(int rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  Range units_of_piece(std::int64_t piece) const { return {piece * units_per_piece_, (piece + 1) * units_per_piece_}; }
  int rank_of(std::int64_t unit) const;
  int owner_of(std::int64_t piece) const { return rank_of(piece * units_per_piece_); }
  // Pieces that a rank owns: a contiguous range, possibly empty.
  Range pieces_of_owner(int rank) const;
  // Tiles that a rank decodes for pieces it does not own; all are of one piece, the first it works on.
  std::int64_t foreign_tiles(int rank) const;
  int ranks() const { return static_cast<int>(by_rank_.size()); }
  int ranks_with_work() const;

 private:
  std::int64_t pieces_, tiles_, group_, units_per_piece_;
  std::vector<Range> by_rank_;
};

}  // namespace h3
