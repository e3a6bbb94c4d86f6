// Stitching against the definition of spec/vae.md 9.2, written out over whole raw tiles.
#include "vae/tile_stitch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace h3 {
namespace {

constexpr std::int64_t kPlanes = 2;

TilePlan plan_of(std::int64_t height, std::int64_t width) {
  return {tile_axis(height, 256, 64, 16), tile_axis(width, 256, 64, 16)};
}

using Values = std::vector<float>;

struct Tiles {
  explicit Tiles(const TilePlan& p) : plan(p), raw(static_cast<std::size_t>(p.count())) {
    for (Values& t : raw) t.resize(static_cast<std::size_t>(kPlanes * p.y.tile * p.x.tile));
  }
  float& at(std::int64_t tile, std::int64_t plane, std::int64_t y, std::int64_t x) {
    return raw[static_cast<std::size_t>(tile)][static_cast<std::size_t>((plane * plan.y.tile + y) * plan.x.tile + x)];
  }
  // Calls f(tile, plane, y, x) for every sample.
  template <typename F>
  void for_each(F&& f) const {
    for (std::int64_t t = 0; t < plan.count(); ++t)
      for (std::int64_t p = 0; p < kPlanes; ++p)
        for (std::int64_t y = 0; y < plan.y.tile; ++y)
          for (std::int64_t x = 0; x < plan.x.tile; ++x) f(t, p, y, x);
  }
  TilePlan plan;
  std::vector<Values> raw;
};

Values stitched(Tiles tiles) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  const TilePlan& plan = tiles.plan;
  TileStitcher stitcher(*machine, plan, kPlanes);
  Values canvas(static_cast<std::size_t>(kPlanes * plan.y.length * plan.x.length), -7.0f);
  for (int round = 0; round < 2; ++round) {  // the second start must not see the first
    stitcher.start(Tensor(canvas.data(), {kPlanes, plan.y.length, plan.x.length}, DType::f32));
    for (const Values& raw : tiles.raw) {
      Values tile = raw;
      EXPECT_FALSE(stitcher.complete());
      stitcher.add(*q, Tensor(tile.data(), {kPlanes, plan.y.tile, plan.x.tile}, DType::f32));
    }
    EXPECT_TRUE(stitcher.complete());
  }
  return canvas;
}

// 9.2, sample by sample: the value of tile (i, j) at (y, x) after both blends.
float blended(Tiles& tiles, std::int64_t tile, std::int64_t plane, std::int64_t y, std::int64_t x) {
  const TileAxis &ay = tiles.plan.y, &ax = tiles.plan.x;
  const std::int64_t i = tiles.plan.row(tile), j = tiles.plan.column(tile);
  float v = tiles.at(tile, plane, y, x);
  const auto blend = [&](float older, std::int64_t p, std::int64_t length) {
    const float b = static_cast<float>(p) / static_cast<float>(length), a = 1.0f - b;
    const float first = older * a, second = v * b;
    v = first + second;
  };
  if (y < ay.before(i)) blend(tiles.at(tile - ax.count(), plane, ay.tile - ay.before(i) + y, x), y, ay.before(i));
  if (x < ax.before(j)) blend(tiles.at(tile - 1, plane, y, ax.tile - ax.before(j) + x), x, ax.before(j));
  return v;
}

void expect_defined(std::int64_t height, std::int64_t width) {
  Tiles tiles(plan_of(height, width));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (Values& t : tiles.raw)
    for (float& v : t) v = normal(random);
  const Values canvas = stitched(tiles);
  std::size_t wrong = 0;
  std::vector<bool> seen(canvas.size());
  tiles.for_each([&](auto t, auto p, auto y, auto x) {
    const std::int64_t i = tiles.plan.row(t), j = tiles.plan.column(t);
    if (y >= tiles.plan.y.kept(i) || x >= tiles.plan.x.kept(j)) return;
    const auto at =
        static_cast<std::size_t>((p * height + tiles.plan.y.start(i) + y) * width + tiles.plan.x.start(j) + x);
    wrong += canvas[at] != blended(tiles, t, p, y, x);
    seen[at] = true;
  });
  EXPECT_EQ(wrong, 0u) << height << " x " << width;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
}

TEST(TileStitch, FollowsTheDefinition) {
  expect_defined(288, 288);
  expect_defined(64, 480);  // overlaps of one axis that sum to more than a tile
  expect_defined(480, 64);
  expect_defined(272, 672);
  expect_defined(544, 32);
  expect_defined(96, 128);  // one tile
}

TEST(TileStitch, OnesStayOnes) {
  Tiles tiles(plan_of(288, 576));
  for (Values& t : tiles.raw) std::fill(t.begin(), t.end(), 1.0f);
  std::size_t other = 0;
  for (const float v : stitched(tiles)) {
    EXPECT_NEAR(v, 1.0f, 1.3e-7f);
    other += v != 1.0f;
  }
  // a + b is not 1 in float32 for a few fractions p / E only.
  EXPECT_LT(other, static_cast<std::size_t>(kPlanes * 288 * 576 / 10));
}

TEST(TileStitch, ACutPictureComesBack) {
  const std::int64_t height = 288, width = 480;
  Tiles tiles(plan_of(height, width));
  const auto picture = [&](std::int64_t p, std::int64_t y, std::int64_t x) {
    return static_cast<float>(p) + static_cast<float>(y * width + x) / static_cast<float>(height * width);
  };
  tiles.for_each([&](auto t, auto p, auto y, auto x) {
    tiles.at(t, p, y, x) =
        picture(p, tiles.plan.y.start(tiles.plan.row(t)) + y, tiles.plan.x.start(tiles.plan.column(t)) + x);
  });
  const Values canvas = stitched(tiles);
  for (std::int64_t p = 0; p < kPlanes; ++p)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        ASSERT_NEAR(canvas[static_cast<std::size_t>((p * height + y) * width + x)], picture(p, y, x), 1e-6f);
}

}  // namespace
}  // namespace h3
