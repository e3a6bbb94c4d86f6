#include "text/text_encoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "parallel/solo_communicator.h"
#include "support/goldens.h"
#include "text/nano_text.h"
#include "text/rope_frequencies.h"
#include "text/text_rope.h"

namespace h3 {
namespace {

class TextEncoderTest : public ::testing::Test {
 protected:
  TextStates encode(const Presentation& presentation, DType dtype, const TextEncoderOptions& options = {},
                    const VisionFeatures* vision = nullptr, const LayerObserver& observer = {}) {
    TextEncoder encoder(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(dtype), options);
    return encoder.encode(*queue_, presentation, vision, observer);
  }
  VisionFeatures features(const std::string& prefix, DType dtype) {
    return test::golden_features(*machine_, goldens_, prefix, dtype);
  }

  const std::unique_ptr<Machine> machine_ = make_cpu_machine();
  const std::unique_ptr<Queue> queue_ = machine_->make_queue();
  SoloCommunicator solo_{*machine_};
  const test::Goldens goldens_{"text"};
};

void expect_same_bits(const TextStates& a, const TextStates& b) {
  ASSERT_EQ(a.hidden.shape, b.hidden.shape);
  EXPECT_EQ(std::memcmp(a.hidden.data, b.hidden.data, a.hidden.bytes()), 0);
}

TEST_F(TextEncoderTest, AgreesWithStoredPrompts) {
  for (const char* name : {"t2va_prompt", "t2va_tokens", "t2va_long"}) {
    const TextStates states = encode(test::golden_presentation(goldens_, name), DType::f32);
    EXPECT_EQ(states.participants, 1);
    goldens_.expect_close(std::string(name) + ".hidden", states.hidden);
  }
}

TEST_F(TextEncoderTest, TakesVisionFeaturesAndDeepstack) {
  const VisionFeatures vision = features("fl2va_one.image", DType::f32);
  const auto observe = [&](std::int64_t layer, const Tensor& x) {
    goldens_.expect_close("fl2va_one.layer" + std::to_string(layer) + ".input", x);
  };
  const TextStates states = encode(test::golden_presentation(goldens_, "fl2va_one"), DType::f32, {}, &vision, observe);
  goldens_.expect_close("fl2va_one.hidden", states.hidden);
}

TEST_F(TextEncoderTest, Bf16IsAsCloseAsTheReferences) {
  const auto expect_close = [&](const std::string& name, const VisionFeatures* vision) {
    const TextStates states = encode(test::golden_presentation(goldens_, name), DType::bf16, {}, vision);
    const auto values = test::values_of(states.hidden);
    const double stored =
        goldens_.json().at("tensors").at(name + ".hidden_bf16").at("distance_to_float32").at("relative").get<double>();
    const double to_f32 = test::distance(values, test::values_of(goldens_.at(name + ".hidden"))).relative_l2;
    const double to_bf16 = test::distance(values, test::values_of(goldens_.at(name + ".hidden_bf16"))).relative_l2;
    EXPECT_LE(to_f32, 1.5 * stored) << name;
    EXPECT_LE(to_bf16, 1.5 * stored) << name;
  };
  expect_close("t2va_prompt", nullptr);
  const VisionFeatures vision = features("fl2va_one.image", DType::bf16);
  expect_close("fl2va_one", &vision);
}

TEST_F(TextEncoderTest, NeitherChunksNorTilesChangeABit) {
  const Presentation presentation = test::golden_presentation(goldens_, "t2va_long");
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const TextStates whole = encode(presentation, dtype);
    TextEncoderOptions options;
    options.row_chunk = 7;
    expect_same_bits(whole, encode(presentation, dtype, options));
    options.sharding = TextSharding::rows;
    const TextStates by_rows = encode(presentation, dtype, options);
    EXPECT_EQ(by_rows.sharding, TextSharding::rows);
    expect_same_bits(whole, by_rows);
  }
}

TEST_F(TextEncoderTest, ARowDependsOnEarlierRowsAlone) {
  const Presentation all = test::golden_presentation(goldens_, "t2va_long");
  Presentation part = all;
  part.ids.resize(50), part.tags.resize(50), part.types.resize(50);
  for (auto& axis : part.positions) axis.resize(50);
  const TextStates long_states = encode(all, DType::f32), short_states = encode(part, DType::f32);
  EXPECT_EQ(std::memcmp(long_states.hidden.data, short_states.hidden.data, short_states.hidden.bytes()), 0);
}

TEST_F(TextEncoderTest, EncodesOneRowAndSeveralRequests) {
  TextEncoder encoder(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(DType::f32));
  const Presentation one = present(test::nano_tokenizer(), test::nano_text_config(), {"a", {}});
  const TextStates first = encoder.encode(*queue_, one);
  encoder.encode(*queue_, test::golden_presentation(goldens_, "t2va_tokens"));
  expect_same_bits(first, encoder.encode(*queue_, one));
  EXPECT_EQ(first.hidden.shape, Shape({1, 128}));
  EXPECT_GT(encoder.device_bytes(100), encoder.device_bytes(1));
}

TEST_F(TextEncoderTest, SeveralTextsHaveTheBitsOfEachAlone) {
  const Presentation prompt = test::golden_presentation(goldens_, "t2va_prompt");
  const Presentation shows = test::golden_presentation(goldens_, "fl2va_one");
  Presentation beyond = prompt;
  beyond.ids[3] = 576;
  const VisionFeatures vision = features("fl2va_one.image", DType::f32);
  VisionFeatures broken = features("fl2va_one.image", DType::f32);
  broken.embeddings.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  TextEncoder encoder(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(DType::f32));
  const std::vector<TextRequest> requests{{beyond}, {shows, &vision}, {shows, &broken}, {prompt}};
  const std::vector<TextStates> all = encoder.encode_all(*queue_, requests);
  ASSERT_EQ(all.size(), requests.size());
  EXPECT_THROW(std::rethrow_exception(all[0].error), UserError);
  expect_same_bits(all[1], encode(shows, DType::f32, {}, &vision));
  EXPECT_THROW(std::rethrow_exception(all[2].error), SceneError);
  expect_same_bits(all[3], encode(prompt, DType::f32));
}

TEST_F(TextEncoderTest, RefusesTokensBeyondTheEmbedding) {
  Presentation presentation = test::golden_presentation(goldens_, "t2va_prompt");
  presentation.ids[3] = 576;
  EXPECT_THROW(encode(presentation, DType::f32), UserError);
}

TEST_F(TextEncoderTest, RefusesMediaWithoutFeatures) {
  EXPECT_THROW(encode(test::golden_presentation(goldens_, "fl2va_one"), DType::f32), RunError);
  const VisionFeatures other = features("ref2va_image_clip.video", DType::f32);
  EXPECT_THROW(encode(test::golden_presentation(goldens_, "fl2va_one"), DType::f32, {}, &other), RunError);
}

TEST_F(TextEncoderTest, ReportsValuesThatAreNotFinite) {
  VisionFeatures vision = features("fl2va_one.image", DType::f32);
  vision.embeddings.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(encode(test::golden_presentation(goldens_, "fl2va_one"), DType::f32, {}, &vision), SceneError);
}

TEST(TextRope, FrequenciesTurnWithTheirAxis) {
  const TextConfig& config = test::nano_text_config();
  std::vector<float> cos_values(16), sin_values(16);
  const Tensor cos(cos_values.data(), {1, 16}, DType::f32), sin(sin_values.data(), {1, 16}, DType::f32);
  fill_text_rope(config, {{{3}, {5}, {7}}}, cos, sin);
  const auto frequencies = rotary_frequencies(16, config.rope_theta);
  for (std::size_t i = 0; i < 16; ++i) {
    const int position = i == 15 || i % 3 == 0 ? 3 : i % 3 == 1 ? 5 : 7;
    EXPECT_FLOAT_EQ(cos_values[i], std::cos(static_cast<float>(position) * frequencies[i])) << i;
    EXPECT_FLOAT_EQ(sin_values[i], std::sin(static_cast<float>(position) * frequencies[i])) << i;
  }
}

TEST(TextShards, DealWholeUnitsToAnyNumberOfRanks) {
  const TextConfig& nano = test::nano_text_config();
  TextConfig released;
  released.hidden = 5120, released.heads = 64, released.kv_heads = 8, released.head_dim = 128, released.ffn = 25600;
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (const TextConfig& config : {nano, released}) {
      const std::int64_t unit = config.hidden >= 2048 ? 128 : 16;
      const TextShards shards = make_text_shards(config, ranks, 300, TextSharding::automatic, 301);
      ASSERT_EQ(shards.sharding, TextSharding::outputs);
      for (const auto* ranges : {&shards.groups, &shards.hidden, &shards.ffn}) {
        std::int64_t at = 0;
        for (const Range& r : *ranges) {
          EXPECT_EQ(r.begin, at);
          EXPECT_TRUE(ranges == &shards.groups || r.begin % unit == 0 || r.size() == 0);
          at = r.end;
        }
      }
      EXPECT_EQ(shards.groups.back().end, config.kv_heads);
      EXPECT_EQ(shards.hidden.back().end, config.hidden);
      EXPECT_EQ(shards.ffn.back().end, config.ffn);
      EXPECT_EQ(shards.participants(), std::min<std::int64_t>(ranks, config.ffn / unit));
    }
  }
}

TEST(TextShards, TilesCoverEveryRowOnceInOrder) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::int64_t rows : {1, 127, 128, 129, 500, 1025, 4097}) {
      const TextShards shards = make_text_shards(test::nano_text_config(), ranks, rows, TextSharding::rows, 0);
      std::vector<int> seen(static_cast<std::size_t>(rows));
      for (const auto& tiles : shards.rows) {
        std::int64_t at = 0;
        for (const Range& tile : tiles) {
          EXPECT_LE(at, tile.begin);
          EXPECT_EQ(tile.begin % 128, 0);
          at = tile.end;
          for (std::int64_t row = tile.begin; row < tile.end; ++row) ++seen[static_cast<std::size_t>(row)];
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), rows);
    }
  }
}

}  // namespace
}  // namespace h3
