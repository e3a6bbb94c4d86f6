#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "media/resize.h"
#include "parallel/solo_communicator.h"
#include "support/goldens.h"
#include "text/nano_text.h"
#include "text/text_encoder.h"
#include "text/vision_input.h"
#include "text/vision_position.h"
#include "text/vision_tower.h"

namespace h3 {
namespace {

const test::Goldens& goldens() {
  static const test::Goldens text("text");
  return text;
}

VisionGrid pixels(std::int64_t blocks, std::int64_t rows, std::int64_t columns) {
  return {blocks, rows / 16, columns / 16};
}

TEST(VisionInput, PicturesKeepTheirSizeWithinTheBudget) {
  EXPECT_EQ(picture_grid(1344, 768), pixels(1, 768, 1344));
  EXPECT_EQ(picture_grid(8192, 2048), pixels(1, 2048, 8192));  // exactly the most
  EXPECT_EQ(picture_grid(256, 128), pixels(1, 192, 384));      // below the least: scaled up
  EXPECT_EQ(picture_grid(256, 192), pixels(1, 224, 320));
  EXPECT_LE(picture_grid(9000, 9000).patches() * 256, 16777216);
  EXPECT_THROW(picture_grid(6432, 32), UserError);
}

TEST(VisionInput, ClipsShareABudgetOverTheirSamples) {
  // spec/text.md 3.5
  struct Row {
    std::int64_t height, width, samples, rows, columns;
  };
  for (const Row& r : {Row{768, 1344, 25, 768, 1344}, Row{768, 1344, 26, 736, 1280}, Row{768, 1344, 27, 704, 1248},
                       Row{768, 1344, 28, 704, 1248}, Row{768, 1344, 29, 704, 1216}, Row{768, 1344, 30, 672, 1184},
                       Row{768, 1344, 31, 672, 1184}, Row{672, 1536, 26, 640, 1472}, Row{672, 1536, 28, 608, 1408},
                       Row{672, 1536, 30, 576, 1376}, Row{672, 1536, 31, 576, 1344}, Row{768, 1152, 29, 768, 1152},
                       Row{768, 1152, 30, 736, 1120}, Row{768, 1152, 31, 704, 1088}, Row{768, 1024, 31, 768, 1024}}) {
    EXPECT_EQ(clip_grid(r.samples, r.width, r.height), pixels((r.samples + 1) / 2, r.rows, r.columns))
        << r.height << "x" << r.width << " " << r.samples;
  }
  EXPECT_EQ(clip_grid(2, 16, 16).rows, 4);  // 2 x 32 x 32 is below the least of 4096
}

TEST(VisionInput, PacksPatchesOfATokenTogether) {
  Image ramp(384, 192);  // 12 x 24 patches; each pixel tells its place
  for (int y = 0; y < ramp.height; ++y) {
    for (int x = 0; x < ramp.width; ++x) {
      ramp.pixel(x, y)[0] = static_cast<std::uint8_t>(x / 16);
      ramp.pixel(x, y)[1] = static_cast<std::uint8_t>(y / 16);
      ramp.pixel(x, y)[2] = static_cast<std::uint8_t>(y % 16 * 16 + x % 16);
    }
  }
  const VisionPixels packed = picture_patches(ramp);
  ASSERT_EQ(packed.grid, pixels(1, 192, 384));
  for (std::int64_t i = 0; i < packed.grid.patches(); ++i) {
    const PatchPlace place = patch_place(i, packed.grid.columns);
    const std::uint8_t* patch = packed.patches.data() + i * kPatchValues;
    for (int value = 0; value < 256; ++value) {
      for (int frame = 0; frame < 2; ++frame) {
        ASSERT_EQ(patch[frame * 256 + value], place.column);
        ASSERT_EQ(patch[512 + frame * 256 + value], place.row);
        ASSERT_EQ(patch[1024 + frame * 256 + value], value);
      }
    }
  }
  EXPECT_EQ(patch_place(0, 24).column, 0);
  EXPECT_EQ(patch_place(1, 24).column, 1);
  EXPECT_EQ(patch_place(2, 24).row, 1);
  EXPECT_EQ(patch_place(4, 24).column, 2);
  EXPECT_EQ(patch_place(48, 24).row, 2);
}

TEST(VisionInput, AnOddClipShowsItsLastFrameTwice) {
  std::vector<Image> frames;
  for (int i = 0; i < 3; ++i) {
    frames.emplace_back(64, 64);
    std::fill(frames.back().rgb.begin(), frames.back().rgb.end(), static_cast<std::uint8_t>(i));
  }
  const VisionPixels packed = clip_patches(frames);
  ASSERT_EQ(packed.grid, pixels(2, 64, 64));
  const std::uint8_t* second = packed.patches.data() + packed.grid.patches_per_block() * kPatchValues;
  EXPECT_EQ(packed.patches[0], 0);
  EXPECT_EQ(packed.patches[256], 1);
  EXPECT_EQ(second[0], 2);
  EXPECT_EQ(second[256], 2);
}

TEST(VisionInput, PixelsAreTheStoredOnes) {
  const auto expect_pixels = [](const VisionPixels& actual, const std::string& name) {
    const Tensor stored = goldens().at(name);
    ASSERT_GE(actual.patches.size(), stored.bytes());
    EXPECT_EQ(std::memcmp(actual.patches.data(), stored.data, stored.bytes()), 0) << name;
  };
  expect_pixels(test::golden_pixels(goldens(), "fl2va_one")[0], "fl2va_one.image.pixel_u8");
  const auto media = test::golden_pixels(goldens(), "ref2va_image_clip");
  expect_pixels(media[1], "ref2va_image_clip.video.pixel_u8");
  const auto& levels = normalized_levels();
  goldens().expect_close("pixel_table", Tensor(const_cast<float*>(levels.data()), {256}, DType::f32));
}

TEST(Resize, AgreesWithStoredPictures) {
  const test::Goldens media("media");
  const auto frame = [&](const std::string& name) { return test::golden_frames(media, name)[0]; };
  const Image first = frame("png:first"), noise = frame("png:noise");
  EXPECT_TRUE(resize_lanczos(first, 256, 192) == frame("png:first.stretch_192x256"));
  EXPECT_TRUE(resize_lanczos(first, 128, 96) == frame("png:first.stretch_96x128"));
  EXPECT_TRUE(resize_lanczos(first, 160, 288) == frame("png:first.stretch_288x160"));
  EXPECT_TRUE(resize_lanczos(noise, 128, 96) == frame("png:noise.stretch_96x128"));
  EXPECT_TRUE(resize_lanczos(noise, 64, 32) == frame("png:noise.stretch_32x64"));
  EXPECT_TRUE(cover(first, 256, 192) == frame("png:first.cover_192x256"));
  EXPECT_TRUE(cover(first, 288, 160) == frame("png:first.cover_160x288"));
  EXPECT_TRUE(cover(noise, 96, 64) == frame("png:noise.cover_64x96"));
  for (const char* size : {"first.stretch_192x256", "first.stretch_96x128", "noise.stretch_96x128"}) {
    std::string name = size;
    const Image stretched = frame("png:" + name);
    name.replace(name.find("stretch"), 7, "bicubic");
    EXPECT_TRUE(resize_bicubic(stretched, 320, 224) == frame("png:" + name)) << name;
  }
}

TEST(Resize, KeepsWhatNeedNotChange) {
  const Image first = test::golden_frames(goldens(), "png:first")[0];
  EXPECT_TRUE(resize_lanczos(first, first.width, first.height) == first);
  EXPECT_TRUE(resize_bicubic(first, first.width, first.height) == first);
  EXPECT_TRUE(cover(first, first.width, first.height) == first);
  Image flat(5, 3);
  std::fill(flat.rgb.begin(), flat.rgb.end(), std::uint8_t{201});
  for (const auto& [w, h] : {std::pair{1, 1}, {7, 3}, {5, 100}, {64, 2}}) {
    for (const Image& image : {resize_lanczos(flat, w, h), resize_bicubic(flat, w, h)}) {
      ASSERT_EQ(image.rgb.size(), static_cast<std::size_t>(w * h * 3));
      EXPECT_EQ(std::count(image.rgb.begin(), image.rgb.end(), 201), w * h * 3) << w << "x" << h;
    }
  }
}

TEST(VisionWork, DealsEverySegmentOnceAndEvenly) {
  const VisionConfig& config = test::nano_text_config().vision;
  const std::vector<VisionGrid> grids = {{1, 48, 84}, {15, 44, 76}, {1, 2, 2}, {3, 10, 4}};
  const auto segments = segments_of(grids);
  ASSERT_EQ(segments.size(), 20u);
  EXPECT_EQ(segments[1].first_token, 1008);
  EXPECT_EQ(segments.back().first_token + segments.back().tokens(), 1008 + 15 * 836 + 1 + 30);
  for (int ranks = 1; ranks <= 25; ++ranks) {
    std::vector<int> seen(segments.size());
    double largest = 0, sum = 0;
    for (const auto& list : deal_segments(config, segments, ranks)) {
      double load = 0;
      for (const std::size_t i : list) {
        ++seen[i];
        load += segment_cost(config, segments[i]);
      }
      EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
      largest = std::max(largest, load), sum += load;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 20);
    EXPECT_LE(largest, sum / ranks + segment_cost(config, segments[0]));
  }
}

class VisionTowerTest : public ::testing::Test {
 protected:
  VisionFeatures encode(const std::vector<VisionPixels>& items, DType dtype = DType::f32,
                        const VisionTowerOptions& options = {}, const VisionObserver& observer = {}) {
    VisionTower tower(*machine_, solo_, test::nano_text_config().vision, test::nano_text_weights(dtype), options);
    return tower.encode(*queue_, items, observer);
  }
  static void expect_features(const VisionFeatures& features, const std::string& prefix, std::int64_t first,
                              std::int64_t rows) {
    goldens().expect_close(prefix + ".merged", features.embeddings.rows(first, first + rows));
    for (std::size_t k = 0; k < 3; ++k) {
      goldens().expect_close(prefix + ".deepstack" + std::to_string(k),
                             features.deepstack[k].rows(first, first + rows));
    }
  }

  const std::unique_ptr<Machine> machine_ = make_cpu_machine();
  const std::unique_ptr<Queue> queue_ = machine_->make_queue();
  SoloCommunicator solo_{*machine_};
};

TEST_F(VisionTowerTest, AgreesWithStoredBlocks) {
  const auto observer_of = [](const std::string& prefix) {
    return [prefix](const std::string& name, const Tensor& x) {
      if (goldens().has(prefix + "." + name)) goldens().expect_close(prefix + "." + name, x);
    };
  };
  const auto picture = test::golden_pixels(goldens(), "fl2va_one");
  expect_features(encode(picture, DType::f32, {}, observer_of("fl2va_one.image")), "fl2va_one.image", 0, 70);
  const auto media = test::golden_pixels(goldens(), "ref2va_image_clip");
  expect_features(encode({media[1]}, DType::f32, {}, observer_of("ref2va_image_clip.video")), "ref2va_image_clip.video",
                  0, 96);
  const VisionFeatures both = encode(media);
  expect_features(both, "ref2va_image_clip.image", 0, 70);
  expect_features(both, "ref2va_image_clip.video", 70, 96);
}

TEST_F(VisionTowerTest, PositionsAndRopeAgree) {
  const auto& config = test::nano_text_config().vision;
  const auto expect_grid = [&](const std::string& prefix, std::int64_t rows, std::int64_t columns,
                               std::int64_t blocks) {
    const std::int64_t n = rows * columns;
    std::vector<float> positions(static_cast<std::size_t>(blocks * n * 64)), cos(static_cast<std::size_t>(n * 8)),
        sin(cos);
    const Tensor p(positions.data(), {blocks * n, 64}, DType::f32);
    for (std::int64_t b = 0; b < blocks; ++b) {
      // In two calls, as chunks do.
      const Tensor block = p.rows(b * n, (b + 1) * n);
      const Tensor& table = test::nano_text_weights(DType::f32).at("model.visual.pos_embed.weight");
      fill_vision_positions(table, rows, columns, 0, block.rows(0, 20));
      fill_vision_positions(table, rows, columns, 20, block.rows(20, n));
    }
    goldens().expect_close(prefix + ".position_embed", p);
    const Tensor c(cos.data(), {n, 8}, DType::f32), s(sin.data(), {n, 8}, DType::f32);
    fill_vision_rope(config, rows, columns, c, s);
    std::vector<float> all_cos, all_sin;  // stored twice a row, for every block
    for (std::int64_t i = 0; i < blocks * n * 2; ++i) {
      const auto row = static_cast<std::ptrdiff_t>(i / 2 % n * 8);
      all_cos.insert(all_cos.end(), cos.begin() + row, cos.begin() + row + 8);
      all_sin.insert(all_sin.end(), sin.begin() + row, sin.begin() + row + 8);
    }
    goldens().expect_close(prefix + ".rope_cos", Tensor(all_cos.data(), {blocks * n, 16}, DType::f32));
    goldens().expect_close(prefix + ".rope_sin", Tensor(all_sin.data(), {blocks * n, 16}, DType::f32));
  };
  expect_grid("fl2va_one.image", 14, 20, 1);
  expect_grid("ref2va_image_clip.video", 12, 16, 2);
}

TEST_F(VisionTowerTest, NeitherChunksNorCompanyChangeABit) {
  const auto media = test::golden_pixels(goldens(), "ref2va_image_clip");
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const VisionFeatures all = encode(media, dtype);
    VisionTowerOptions options;
    options.row_chunk = 12;
    const VisionFeatures chunked = encode(media, dtype, options), clip = encode({media[1]}, dtype);
    EXPECT_EQ(std::memcmp(all.embeddings.data, chunked.embeddings.data, all.embeddings.bytes()), 0);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(std::memcmp(all.deepstack[k].data, chunked.deepstack[k].data, all.deepstack[k].bytes()), 0);
      EXPECT_EQ(std::memcmp(all.deepstack[k].rows(70, 166).data, clip.deepstack[k].data, clip.deepstack[k].bytes()), 0);
    }
  }
}

TEST_F(VisionTowerTest, NoMediaGiveNoFeatures) {
  EXPECT_FALSE(encode({}).embeddings);
}

TEST_F(VisionTowerTest, HiddenStatesOfRequestsWithMediaAgree) {
  TextEncoder encoder(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(DType::f32));
  for (const char* name : {"fl2va_one", "fl2va_both", "ref2va_image_clip", "ref2va_odd"}) {
    const VisionFeatures features = encode(test::golden_pixels(goldens(), name));
    const TextStates states = encoder.encode(*queue_, test::golden_presentation(goldens(), name), &features);
    goldens().expect_close(std::string(name) + ".hidden", states.hidden);
  }
}

TEST_F(VisionTowerTest, Bf16IsAsCloseAsTheReference) {
  const VisionFeatures features = encode(test::golden_pixels(goldens(), "fl2va_one"), DType::bf16);
  TextEncoder encoder(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(DType::bf16));
  const TextStates states = encoder.encode(*queue_, test::golden_presentation(goldens(), "fl2va_one"), &features);
  const auto values = test::values_of(states.hidden);
  const double stored =
      goldens().json().at("tensors").at("fl2va_one.hidden_bf16").at("distance_to_float32").at("relative").get<double>();
  EXPECT_LE(test::distance(values, test::values_of(goldens().at("fl2va_one.hidden"))).relative_l2, 1.5 * stored);
  EXPECT_LE(test::distance(values, test::values_of(goldens().at("fl2va_one.hidden_bf16"))).relative_l2, 1.5 * stored);
}

}  // namespace
}  // namespace h3
