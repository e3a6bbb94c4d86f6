// The tile layouts of spec/vae.md 9.1, against its table and its rules.
#include "vae/tile_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace h3 {
namespace {

using List = std::vector<std::int64_t>;

TileAxis released(std::int64_t length) {
  return tile_axis(length, 256, 64, 16);
}

VideoVaeConfig released_config() {
  return released_model_config().video_vae;
}

TEST(TilePlan, TableOfTheSpecification) {
  struct Row {
    std::int64_t length;
    List starts, overlaps;
  };
  const List eighty_then_64{80, 80, 80, 80, 80, 80, 80, 80, 64, 64};
  const Row rows[] = {
      {32, {0}, {}},
      {256, {0}, {}},
      {272, {0, 16}, {240}},
      {480, {0, 112, 224}, {144, 144}},
      {512, {0, 128, 256}, {128, 128}},
      {544, {0, 144, 288}, {112, 112}},
      {576, {0, 160, 320}, {96, 96}},
      {672, {0, 128, 272, 416}, {128, 112, 112}},
      {768, {0, 160, 336, 512}, {96, 80, 80}},
      {864, {0, 144, 288, 448, 608}, {112, 112, 96, 96}},
      {896, {0, 160, 320, 480, 640}, {96, 96, 96, 96}},
      {960, {0, 176, 352, 528, 704}, {80, 80, 80, 80}},
      {1024, {0, 192, 384, 576, 768}, {64, 64, 64, 64}},
      {1280, {0, 160, 320, 496, 672, 848, 1024}, {96, 96, 80, 80, 80, 80}},
      {1344, {0, 176, 352, 528, 704, 896, 1088}, {80, 80, 80, 80, 64, 64}},
      {1536, {0, 176, 352, 528, 704, 896, 1088, 1280}, {80, 80, 80, 80, 64, 64, 64}},
      {2048, {0, 176, 352, 528, 704, 880, 1056, 1232, 1408, 1600, 1792}, eighty_then_64},
  };
  for (const Row& row : rows) {
    const TileAxis axis = released(row.length);
    EXPECT_EQ(axis.starts, row.starts) << row.length;
    EXPECT_EQ(axis.overlaps, row.overlaps) << row.length;
    EXPECT_EQ(axis.tile, std::min<std::int64_t>(row.length, 256));
  }
}

TEST(TilePlan, EveryLengthIsCoveredExactly) {
  for (std::int64_t length = 32; length <= 8192; length += 16) {
    const TileAxis axis = released(length);
    EXPECT_EQ(axis.starts.back() + axis.tile, length);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < axis.count(); ++i) {
      EXPECT_EQ(axis.start(i) % 16, 0);
      EXPECT_EQ(axis.start(i), kept) << "tile " << i << " of " << length;
      kept += axis.kept(i);
      EXPECT_TRUE(i == 0 || axis.before(i) >= 64);
      EXPECT_LT(axis.after(i), 256);
    }
    EXPECT_EQ(kept, length);
  }
}

TEST(TilePlan, TilesOfACanvas) {
  const VideoVaeConfig config = released_config();
  const auto tiles = [&](std::int64_t height, std::int64_t width) { return plan_tiles(config, height, width).count(); };
  EXPECT_EQ(tiles(768, 1344), 28);
  EXPECT_EQ(tiles(1344, 768), 28);
  EXPECT_EQ(tiles(768, 768), 16);
  EXPECT_EQ(tiles(768, 1024), 20);
  for (const auto& [h, w] : {std::pair{576, 1024}, {544, 960}, {480, 864}, {512, 896}}) EXPECT_EQ(tiles(h, w), 15);
  EXPECT_EQ(tiles(256, 256), 1);
  EXPECT_EQ(tiles(672, 1568), 32);
  const TilePlan plan = plan_tiles(config, 768, 1344);
  EXPECT_EQ(plan.row(9), 1);
  EXPECT_EQ(plan.column(9), 2);
}

TEST(TilePlan, InLatents) {
  const TileAxis axis = released(480).divided_by(16);
  EXPECT_EQ(axis.length, 30);
  EXPECT_EQ(axis.tile, 16);
  EXPECT_EQ(axis.starts, (List{0, 7, 14}));
  EXPECT_EQ(axis.overlaps, (List{9, 9}));
}

TEST(TilePlan, RefusesOtherLengths) {
  for (const std::int64_t length : {0, -16, 8, 250, 1080}) EXPECT_THROW(released(length), UserError) << length;
}

}  // namespace
}  // namespace h3
