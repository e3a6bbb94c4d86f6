// The audio encoder against the reference's means and rows, and lengths.
#include "vae/audio_encoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "parallel/solo_communicator.h"
#include "support/goldens.h"
#include "vae_fixture.h"

namespace h3::test {
namespace {

class Encoder {
 public:
  Encoder()
      : machine(make_cpu_machine()),
        queue(machine->make_queue()),
        encoder(*machine, *queue, nano_config().audio_vae, nano_weights(Component::audio_vae)) {}
  std::vector<AudioRows> rows(std::vector<Tensor> sounds) {
    SoloCommunicator alone(*machine);
    return encode_sounds(*machine, *queue, alone, encoder, sounds);
  }
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Queue> queue;
  AudioEncoder encoder;
};

TEST(AudioEncoder, GoldenMeans) {
  const Goldens goldens("audio");
  Encoder nano;
  for (const std::string name : {"encode37", "encode65"}) {
    const Tensor wave = goldens.at(name + ".wave");
    const std::int64_t latents = AudioEncoder::latents(nano_config().audio_vae, wave.size(1));
    std::vector<float> by_row(static_cast<std::size_t>(latents * 32)), mean;
    for (std::int64_t c = 0; c < 2; ++c) {
      nano.encoder.encode(*nano.queue, wave.at(c), Tensor(by_row.data(), {latents, 32}, DType::f32));
      for (std::int64_t i = 0; i < 32; ++i)
        for (std::int64_t t = 0; t < latents; ++t) mean.push_back(by_row[static_cast<std::size_t>(t * 32 + i)]);
    }
    goldens.expect_close(name + ".mean", Tensor(mean.data(), {2, 32, latents}, DType::f32));
  }
}

TEST(AudioEncoder, GoldenRows) {
  const Goldens goldens("audio");
  Encoder nano;
  std::vector<AudioRows> rows = nano.rows({goldens.at("encode37.wave"), goldens.at("encode65.wave")});
  ASSERT_EQ(rows.size(), 2u);
  goldens.expect_close("encode37.rows", Tensor(rows[0].values.data(), rows[0].shape, DType::f32));
  goldens.expect_close("encode65.rows", Tensor(rows[1].values.data(), rows[1].shape, DType::f32));
}

TEST(AudioEncoder, Lengths) {
  const AudioVaeConfig& config = nano_config().audio_vae;
  EXPECT_EQ(AudioEncoder::latents(config, 1), 1);
  EXPECT_EQ(AudioEncoder::latents(config, 800), 1);
  EXPECT_EQ(AudioEncoder::latents(config, 801), 2);
  Encoder nano;
  for (const std::int64_t samples : {1, 800, 801}) {
    std::vector<float> wave(static_cast<std::size_t>(2 * samples), 0.25f);
    const auto rows = nano.rows({Tensor(wave.data(), {2, samples}, DType::f32)});
    EXPECT_EQ(rows[0].shape[0], 2 * AudioEncoder::latents(config, samples));
    for (const float v : rows[0].values) ASSERT_TRUE(std::isfinite(v));
  }
}

// The attention is causal, but convolutions look ahead; latents a good way before a change stay as they are.
TEST(AudioEncoder, ALaterSoundDoesNotReachBack) {
  Encoder nano;
  std::vector<float> wave(static_cast<std::size_t>(2 * 40 * 800));
  for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = std::sin(0.05f * static_cast<float>(i % 32000));
  const auto before = nano.rows({Tensor(wave.data(), {2, 40 * 800}, DType::f32)});
  for (std::size_t i = 36 * 800; i < 40 * 800; ++i) wave[i] = -wave[i];
  const auto after = nano.rows({Tensor(wave.data(), {2, 40 * 800}, DType::f32)});
  const std::size_t untouched = 20 * 32;
  EXPECT_TRUE(std::equal(before[0].values.begin(), before[0].values.begin() + untouched, after[0].values.begin()));
  EXPECT_NE(before[0].values, after[0].values);
  EXPECT_TRUE(std::equal(before[0].values.begin() + 40 * 32, before[0].values.end(), after[0].values.begin() + 40 * 32))
      << "the other channel";
}

TEST(AudioEncoder, RefusesAnEmptySound) {
  Encoder nano;
  EXPECT_THROW(nano.rows({Tensor(nullptr, {2, 0}, DType::f32)}), UserError);
  EXPECT_TRUE(nano.rows({}).empty());
}

}  // namespace
}  // namespace h3::test
