// How a canvas is cut into overlapping tiles (spec/vae.md 9.1). The autoencoder works on tiles of one size and knows
// positions inside a tile only, so the layout is part of the model: the same for every rank, in pixels for decoding and
// in pixels and latents for encoding. Tiles are numbered row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/shards.h"
#include "weights/model_config.h"

namespace h3 {

// One side of a canvas. Every tile has the same size; the last one ends at `length`.
struct TileAxis {
  std::int64_t length = 0;
  std::int64_t tile = 0;               // min(length, the configured tile)
  std::vector<std::int64_t> starts;    // by tile
  std::vector<std::int64_t> overlaps;  // overlaps[i] of tile i and tile i + 1
  std::int64_t count() const { return static_cast<std::int64_t>(starts.size()); }
  // Overlap of tile i with the one before it, and with the one after it; 0 at the ends.
  std::int64_t before(std::int64_t i) const { return i == 0 ? 0 : overlaps[static_cast<std::size_t>(i - 1)]; }
  std::int64_t after(std::int64_t i) const { return i + 1 == count() ? 0 : overlaps[static_cast<std::size_t>(i)]; }
  std::int64_t start(std::int64_t i) const { return starts[static_cast<std::size_t>(i)]; }
  // What tile i contributes to the canvas: all but its overlap with the next tile.
  std::int64_t kept(std::int64_t i) const { return tile - after(i); }
  std::int64_t largest_overlap() const;
  // The same layout in units of `ratio` pixels; everything is divisible.
  TileAxis divided_by(std::int64_t ratio) const;
};

// Lays tiles of `tile` with at least `overlap` over `length`; starts and overlaps are multiples of `unit`. Throws
// UserError when `length` is not a positive multiple of `unit`.
TileAxis tile_axis(std::int64_t length, std::int64_t tile, std::int64_t overlap, std::int64_t unit);

struct TilePlan {
  TileAxis y, x;
  std::int64_t count() const { return y.count() * x.count(); }
  std::int64_t row(std::int64_t index) const { return index / x.count(); }
  std::int64_t column(std::int64_t index) const { return index % x.count(); }
  TilePlan divided_by(std::int64_t ratio) const { return {y.divided_by(ratio), x.divided_by(ratio)}; }
};

// The tiles of a canvas of height x width pixels.
TilePlan plan_tiles(const VideoVaeConfig& config, std::int64_t height, std::int64_t width);

}  // namespace h3
