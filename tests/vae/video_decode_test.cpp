// Decoding on one rank: group sizes do not change a bit, odd lengths and shapes, profile R against profile F, and what
// is refused.
#include "vae/video_decode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "parallel/solo_communicator.h"
#include "sampling/latent_rows.h"
#include "support/goldens.h"
#include "vae/latent_grid.h"
#include "vae_fixture.h"

namespace h3::test {
namespace {

class SmallDecoder {
 public:
  explicit SmallDecoder(VaeProfile profile = VaeProfile::F)
      : machine(make_cpu_machine()),
        queue(machine->make_queue()),
        config(small_vae_config()),
        weights(small_vae_weights(config)),
        decoder(*machine, *queue, config, weights, profile) {}

  DecodedClip decode(std::int64_t latent_frames, std::int64_t height, std::int64_t width,
                     std::int64_t tiles_per_unit = kTilesPerUnit, bool truncate = false) {
    VideoDecodeRequest request;
    request.latent_frames = latent_frames;
    request.height = height;
    request.width = width;
    request.tiles_per_unit = tiles_per_unit;
    request.truncate = truncate;
    return decode_alone(*machine, decoder, random_rows(config, latent_frames, height / 16, width / 16), request);
  }

  std::unique_ptr<Machine> machine;
  std::unique_ptr<Queue> queue;
  VideoVaeConfig config;
  WeightSet weights;
  VideoDecoder decoder;
};

TEST(VideoDecode, GroupSizesDoNotChangeABit) {
  for (const VaeProfile profile : {VaeProfile::F, VaeProfile::R}) {
    SmallDecoder small(profile);
    const DecodedClip one = small.decode(12, 32, 576, 1);  // two chunks of three tiles
    ASSERT_EQ(one.report.tiles, 3);
    EXPECT_EQ(one.report.units_by_rank, std::vector<std::int64_t>{6});
    for (const std::int64_t group : {2, 3, 4, 64}) {
      const DecodedClip other = small.decode(12, 32, 576, group);
      EXPECT_EQ(other.u8, one.u8) << group;
      EXPECT_EQ(other.raw, one.raw) << group;
    }
  }
}

TEST(VideoDecode, LengthsAndShapes) {
  SmallDecoder small;
  for (const auto& [tokens, frames] : {std::pair{1, 1}, {2, 5}, {3, 9}, {7, 22}, {8, 26}}) {
    const DecodedClip clip = small.decode(tokens, 32, 64);
    EXPECT_EQ(clip.frames, frames);
    EXPECT_EQ(clip.report.frames, frames);
    EXPECT_EQ(static_cast<std::int64_t>(clip.raw.size()), frames);
  }
  EXPECT_EQ(small.decode(2, 96, 32).frames, 5);
  EXPECT_EQ(small.decode(2, 32, 32).frames, 5);
}

// Chunks are functions of their own latents: a clip's first frames are those of a shorter clip.
TEST(VideoDecode, EarlierChunksDoNotSeeLaterOnes) {
  SmallDecoder small;
  const DecodedClip longer = small.decode(12, 32, 64);
  const DecodedClip shorter = small.decode(7, 32, 64);
  for (std::int64_t f = 0; f < 17; ++f) EXPECT_EQ(longer.raw.at(f), shorter.raw.at(f)) << f;
  EXPECT_EQ(longer.raw.at(17), shorter.raw.at(17)) << "a seam's first frame is the older tail";
}

TEST(VideoDecode, TruncatingToEightBits) {
  SmallDecoder small;
  const DecodedClip rounded = small.decode(2, 32, 32), cut = small.decode(2, 32, 32, kTilesPerUnit, true);
  ASSERT_EQ(rounded.u8.size(), cut.u8.size());
  int down = 0;
  for (std::size_t i = 0; i < cut.u8.size(); ++i) {
    const int difference = rounded.u8[i] - cut.u8[i];
    ASSERT_TRUE(difference == 0 || difference == 1);
    down += difference;
  }
  EXPECT_GT(down, 0);
}

TEST(VideoDecode, PaddingRepeatsTheLastLatent) {
  SmallDecoder small;
  Rows rows = random_rows(small.config, 12, 2, 2);
  const std::size_t row = rows.values.size() / 12;
  for (std::size_t t = 9; t < 12; ++t)
    std::copy_n(rows.values.begin() + static_cast<std::ptrdiff_t>(8 * row), row,
                rows.values.begin() + static_cast<std::ptrdiff_t>(t * row));
  VideoDecodeRequest request;
  request.height = request.width = 32;
  request.latent_frames = 12;
  const DecodedClip whole = decode_alone(*small.machine, small.decoder, rows, request);
  rows.values.resize(9 * row);
  rows.shape[0] = 9;
  request.latent_frames = 9;
  const DecodedClip padded = decode_alone(*small.machine, small.decoder, rows, request);
  ASSERT_EQ(padded.frames, 30);
  for (std::int64_t f = 0; f < 30; ++f) EXPECT_EQ(padded.raw.at(f), whole.raw.at(f)) << f;
}

TEST(VideoDecode, HalfPrecisionIsCloseToFull) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  const VideoVaeConfig& config = nano_config().video_vae;
  const Goldens goldens("vae");
  const Tensor latents = goldens.at("decode22.latents").at(0);
  Rows rows;
  rows.shape = video_rows_shape(latents.shape);
  rows.values.resize(static_cast<std::size_t>(rows.shape.elements()));
  video_rows_from_latent(latents, rows.tensor());
  VideoDecodeRequest request;
  request.latent_frames = 7;
  request.height = 192;
  request.width = 256;
  std::map<VaeProfile, DecodedClip> clips;
  for (const VaeProfile profile : {VaeProfile::F, VaeProfile::R}) {
    VideoDecoder decoder(*machine, *q, config, nano_weights(Component::video_vae, profile), profile);
    clips[profile] = decode_alone(*machine, decoder, rows, request);
  }
  double difference = 0, norm = 0, largest = 0, peak = 0;
  for (const auto& [f, full] : clips[VaeProfile::F].raw)
    for (std::size_t i = 0; i < full.size(); ++i) {
      const double e = std::abs(static_cast<double>(clips[VaeProfile::R].raw.at(f)[i]) - static_cast<double>(full[i]));
      difference += e * e;
      norm += static_cast<double>(full[i]) * static_cast<double>(full[i]);
      largest = std::max(largest, e);
      peak = std::max(peak, std::abs(static_cast<double>(full[i])));
    }
  EXPECT_LT(std::sqrt(difference / norm), 4e-3);
  EXPECT_GT(std::sqrt(difference / norm), 1e-6) << "profile R does round";
  EXPECT_LT(largest, 2e-2 * peak);
}

// Block linears given in float32 are rounded as the loader rounds them.
TEST(VideoDecode, HalfPrecisionFromFloat32Weights) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  const VideoVaeConfig& config = nano_config().video_vae;
  const Rows rows = random_rows(config, 2, 2, 4);
  VideoDecodeRequest request;
  request.latent_frames = 2;
  request.height = 32;
  request.width = 64;
  std::vector<DecodedClip> clips;
  for (const VaeProfile loaded : {VaeProfile::F, VaeProfile::R}) {
    VideoDecoder decoder(*machine, *q, config, nano_weights(Component::video_vae, loaded), VaeProfile::R);
    clips.push_back(decode_alone(*machine, decoder, rows, request));
  }
  EXPECT_EQ(clips[0].raw, clips[1].raw);
}

TEST(VideoDecode, NotANumberIsBlackAndCounted) {
  SmallDecoder small;
  Rows rows = random_rows(small.config, 2, 2, 2);
  rows.values[3] = NAN;
  VideoDecodeRequest request;
  request.latent_frames = 2;
  request.height = request.width = 32;
  const DecodedClip clip = decode_alone(*small.machine, small.decoder, rows, request);
  EXPECT_EQ(clip.frames, 5);
  EXPECT_GT(clip.report.nan_values, 0);
  std::int64_t not_numbers = 0;
  for (const auto& [f, frame] : clip.raw)
    for (const float v : frame) not_numbers += std::isnan(v);
  EXPECT_EQ(clip.report.nan_values, not_numbers);
}

TEST(VideoDecode, AFailingWriterEndsInASceneError) {
  SmallDecoder small;
  SoloCommunicator alone(*small.machine);
  const Rows rows = random_rows(small.config, 12, 2, 2);
  VideoDecodeRequest request;
  request.latent_frames = 12;
  request.height = request.width = 32;
  int calls = 0;
  VideoDecodeCalls to;
  to.frames = [&](std::int64_t, const Tensor&) {
    ++calls;
    throw SceneError("no space left");
  };
  EXPECT_THROW(decode_video(*small.machine, *small.queue, alone, small.decoder, rows.tensor(), request, to),
               SceneError);
  EXPECT_EQ(calls, 1);
}

TEST(VideoDecode, RefusesOtherCanvases) {
  SmallDecoder small;
  for (const auto& [height, width] : {std::pair{16, 32}, {32, 48}, {0, 32}, {-32, 32}}) {
    VideoDecodeRequest request;
    request.latent_frames = 2;
    request.height = height;
    request.width = width;
    SoloCommunicator alone(*small.machine);
    EXPECT_THROW(decode_video(*small.machine, *small.queue, alone, small.decoder, Tensor(), request, {}), UserError);
  }
}

TEST(VideoDecode, MemoryOfTheReleasedModel) {
  const VideoVaeConfig config = released_model_config().video_vae;
  VideoDecodeRequest request;
  request.latent_frames = 102;
  request.height = 768;
  request.width = 1344;
  const VideoDecodeMemory one = video_decode_memory(config, VaeProfile::R, request, 1);
  const VideoDecodeMemory four = video_decode_memory(config, VaeProfile::R, request, 4);
  EXPECT_EQ(one.device, four.device);
  // About 6.5 GB with 4.83 GB of weights (spec/vae.md 13).
  EXPECT_GT(one.device, std::size_t{1'000'000'000});
  EXPECT_LT(one.device, std::size_t{1'800'000'000});
  request.latent_frames = 37;
  EXPECT_EQ(video_decode_memory(config, VaeProfile::R, request, 1).device, one.device) << "no matter how long";
}

TEST(LatentGrid, DenormalisesAndUnpacks) {
  VideoVaeConfig config = small_vae_config();
  const Rows rows = random_rows(config, 8, 4, 6);
  const auto machine = make_cpu_machine();
  const LatentGrid grid(*machine, config, rows.tensor(), 8, 4, 6);
  for (const auto& [t, y, x, c] : {std::array<std::int64_t, 4>{0, 0, 0, 0}, {7, 3, 5, 23}, {4, 1, 2, 11}}) {
    const std::int64_t row = (t * 2 + y / 2) * 3 + x / 2, feature = c * 4 + y % 2 * 2 + x % 2;
    const float scaled =
        rows.values[static_cast<std::size_t>(row * 96 + feature)] * config.latents_std[static_cast<std::size_t>(c)];
    EXPECT_EQ(grid.at(c, t, y, x), scaled + config.latents_mean[static_cast<std::size_t>(c)]);
  }
  const ChunkPlan plan = plan_chunks(temporal_grid(config), 8);
  const TokenGrid tile{7, 2, 3};
  const auto q = machine->make_queue();
  std::vector<float> chunk(static_cast<std::size_t>(7 * 4 * 6 * 24));
  grid.copy_chunk(*machine, *q, plan, 1, Tensor(chunk.data(), {7 * 4 * 6, 24}, DType::f32));
  const std::vector<std::int32_t> tile_rows = grid.tile_rows(tile, 1, 2);
  ASSERT_EQ(static_cast<std::int64_t>(tile_rows.size()), tile.tokens());
  const auto value = [&](std::size_t token, std::int64_t channel) {
    return chunk[static_cast<std::size_t>(tile_rows[token] * 24 + channel)];
  };
  EXPECT_EQ(value(0, 5), grid.at(5, 5, 1, 2));
  EXPECT_EQ(value(6 * 6 + 1 * 3 + 2, 7), grid.at(7, 7, 2, 4)) << "padded";
}

}  // namespace
}  // namespace h3::test
