#include "scene/geometry.h"

#include <cmath>

#include "scene/helpers.h"

namespace h3::test {

struct LengthRow {
  std::int64_t frames, latents, audio, decoded, muxed;
};
// spec/dit.md 3.1 and spec/vae.md 10.1
static const LengthRow lengths[] = {
    {5, 2, 8, 6400, 6667},          {22, 7, 37, 29600, 29334},      {39, 12, 65, 52000, 52000},
    {56, 17, 93, 74400, 74667},     {73, 22, 122, 97600, 97334},    {90, 27, 150, 120000, 120000},
    {107, 32, 178, 142400, 142667}, {124, 37, 207, 165600, 165334}, {141, 42, 235, 188000, 188000},
    {158, 47, 263, 210400, 210667}, {175, 52, 292, 233600, 233334}, {192, 57, 320, 256000, 256000},
    {209, 62, 348, 278400, 278667}, {226, 67, 377, 301600, 301334}, {243, 72, 405, 324000, 324000},
    {260, 77, 433, 346400, 346667}, {277, 82, 462, 369600, 369334}, {294, 87, 490, 392000, 392000},
    {311, 92, 518, 414400, 414667}, {328, 97, 547, 437600, 437334}, {345, 102, 575, 460000, 460000},
    {362, 107, 603, 482400, 482667}};

TEST(Geometry, LengthsAreThoseOfTheSpecification) {
  for (const LengthRow& row : lengths) {
    ASSERT_TRUE(is_legal_frame_count(row.frames)) << row.frames;
    const ClipGeometry g = clip_geometry(1344, 768, row.frames);
    EXPECT_EQ(g.latent_frames, row.latents) << row.frames;
    EXPECT_EQ(g.audio_latents, row.audio) << row.frames;
    EXPECT_EQ(g.decoded_samples(), row.decoded) << row.frames;
    EXPECT_EQ(g.muxed_samples(), row.muxed) << row.frames;
    EXPECT_EQ(g.audio_latents, std::llrint(static_cast<double>(row.frames) / 24 * 40)) << row.frames;
    // Sound and picture end within one latent of each other.
    EXPECT_LT(std::abs(static_cast<double>(g.decoded_samples()) / 32000 - g.seconds()), 800.0 / 32000) << row.frames;
  }
}

TEST(Geometry, SizesOfTheReleasedCanvas) {
  const ClipGeometry g = clip_geometry(1344, 768, 124);
  EXPECT_EQ(g.latent_height, 48);
  EXPECT_EQ(g.latent_width, 84);
  EXPECT_EQ(g.rows_per_frame, 24 * 42);
  EXPECT_EQ(512 + g.audio_rows() + g.video_rows(), 38222);  // spec/dit.md 3.4
}

TEST(Geometry, IllegalFrameCounts) {
  for (const std::int64_t frames : {-5, 0, 1, 4, 6, 21, 23, 72, 120, 125, 361})
    EXPECT_FALSE(is_legal_frame_count(frames));
  using Pair = std::array<std::int64_t, 2>;
  EXPECT_EQ(nearest_frame_counts(120), (Pair{107, 124}));
  EXPECT_EQ(nearest_frame_counts(0), (Pair{5, 22}));
  EXPECT_EQ(nearest_frame_counts(-5), (Pair{5, 22}));
  EXPECT_EQ(nearest_frame_counts(1), (Pair{5, 22}));
  EXPECT_EQ(nearest_frame_counts(23), (Pair{22, 39}));
  EXPECT_TRUE(is_legal_frame_count(nearest_frame_counts(std::numeric_limits<std::int64_t>::max())[1]));
}

TEST(Geometry, SnappingGoesUp) {
  EXPECT_EQ(snapped_frame_count(1), 5);
  EXPECT_EQ(snapped_frame_count(5), 5);
  EXPECT_EQ(snapped_frame_count(6), 22);
  EXPECT_EQ(snapped_frame_count(120), 124);
  EXPECT_EQ(snapped_frame_count(346), 362);
  EXPECT_EQ(snapped_frame_count(most_frames), most_frames);
}

TEST(Geometry, SecondsTakeTheNearestLegalCount) {
  EXPECT_EQ(frames_for_seconds(5.167), 124);
  EXPECT_EQ(frames_for_seconds(5), 124);
  EXPECT_EQ(frames_for_seconds(15), 362);
  EXPECT_EQ(frames_for_seconds(4), 90);
  EXPECT_EQ(frames_for_seconds(30), 719);
  EXPECT_EQ(frames_for_seconds(1e-9), 5);
  EXPECT_EQ(frames_for_seconds(115.5 / 24), 124);  // as near to 107: the longer one
}

TEST(Geometry, CanvasOfAnAspect) {
  const struct {
    const char* aspect;
    CanvasSize size;
  } rows[] = {{"16:9", {1344, 768}}, {"9:16", {768, 1344}}, {"1:1", {768, 768}},  {"4:3", {1024, 768}},
              {"3:4", {768, 1024}},  {"3:2", {1152, 768}},  {"2:3", {768, 1152}}, {"2:1", {1440, 704}},
              {"21:9", {1536, 672}}, {"9:21", {672, 1536}}, {"4:1", {2016, 512}}, {"1:4", {512, 2016}}};
  for (const auto& row : rows) EXPECT_EQ(canvas_for_aspect(*parse_aspect(row.aspect), {}), row.size) << row.aspect;
  EXPECT_EQ(canvas_for_aspect(4.0 / 3, {192, 49152}), (CanvasSize{256, 192}));
  EXPECT_EQ(canvas_for_aspect(1, {8, 64}), (CanvasSize{32, 32}));
  EXPECT_EQ(canvas_for_aspect(4, {192, 49152}), (CanvasSize{384, 96}));  // 448 by 96 would be wider than 4:1
  for (double aspect = 0.25; aspect <= 4; aspect += 1.0 / 64)
    for (const CanvasRule& rule : {CanvasRule{}, CanvasRule{192, 49152}, CanvasRule{64, 8192}}) {
      const CanvasSize size = canvas_for_aspect(aspect, rule);
      EXPECT_FALSE(size_complaint(size.width, size.height)) << aspect << ": " << size.width << "x" << size.height;
    }
}

TEST(Geometry, AspectText) {
  EXPECT_DOUBLE_EQ(*parse_aspect("16:9"), 16.0 / 9);
  EXPECT_DOUBLE_EQ(*parse_aspect("2.39:1"), 2.39);
  EXPECT_DOUBLE_EQ(*parse_aspect("1.5"), 1.5);
  for (const char* text :
       {"", ":", "16:", ":9", "16:0", "-16:9", "16:9:1", "16x9", "nan", "inf:1", "1e999", " 16:9", "a"})
    EXPECT_FALSE(parse_aspect(text)) << text;
  EXPECT_TRUE(is_legal_aspect(4) && is_legal_aspect(0.25));
  EXPECT_FALSE(is_legal_aspect(4.01) || is_legal_aspect(0.249) || is_legal_aspect(NAN));
}

TEST(Geometry, SizesAreRefusedWithTheNearestLegalOnes) {
  EXPECT_FALSE(size_complaint(1344, 768));
  EXPECT_FALSE(size_complaint(32, 32));
  EXPECT_FALSE(size_complaint(1024, 256));
  expect_has(*size_complaint(720, 400), "nearest legal sizes are 736x416 and 704x384");
  expect_has(*size_complaint(592, 400), "multiples of 32");
  expect_has(*size_complaint(1024, 192), "nearest legal sizes are 1024x256 and 992x256");
  expect_has(*size_complaint(192, 1024), "aspect from 1:4 to 4:1");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-32}, std::int64_t{1}, std::int64_t{1} << 40,
                                 std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    ASSERT_TRUE(size_complaint(bad, 768)) << bad;
    for (const CanvasSize& size : nearest_sizes(bad, 768)) EXPECT_FALSE(size_complaint(size.width, size.height));
  }
}

TEST(Geometry, NearestSizesAreLegalAndDiffer) {
  for (std::int64_t w = 1; w < 2200; w += 97)
    for (std::int64_t h = 1; h < 2200; h += 89) {
      const auto [a, b] = nearest_sizes(w, h);
      EXPECT_FALSE(size_complaint(a.width, a.height)) << w << "x" << h;
      EXPECT_FALSE(size_complaint(b.width, b.height)) << w << "x" << h;
      EXPECT_FALSE(a == b);
    }
}

}  // namespace h3::test
