// The audio decoder against the reference's waveforms, and what is said about a waveform.
#include "vae/audio_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/goldens.h"
#include "vae_fixture.h"

namespace h3::test {
namespace {

std::vector<float> decoded(const Tensor& rows) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  const AudioVaeConfig& config = nano_config().audio_vae;
  AudioDecoder decoder(*machine, *q, config, nano_weights(Component::audio_vae));
  std::vector<float> pcm(static_cast<std::size_t>(rows.size(0) * config.hop()), NAN);
  decoder.decode(*q, rows, Tensor(pcm.data(), {2, rows.size(0) / 2 * config.hop()}, DType::f32));
  return pcm;
}

TEST(AudioDecoder, Goldens) {
  const Goldens goldens("audio");
  for (const std::string name : {"decode37", "decode65"}) {
    const Tensor rows = goldens.at(name + ".rows");
    std::vector<float> pcm = decoded(rows);
    const Tensor wave(pcm.data(), {2, rows.size(0) / 2 * 800}, DType::f32);
    goldens.expect_close(name + ".wave", wave);
    EXPECT_TRUE(audio_health(wave).good()) << audio_health(wave).text();
  }
}

TEST(AudioDecoder, OneLatent) {
  const Goldens goldens("audio");
  const Tensor rows = goldens.at("decode37.rows").rows(0, 2);
  const std::vector<float> pcm = decoded(rows);
  ASSERT_EQ(pcm.size(), 1600u);
  for (const float v : pcm) EXPECT_LE(std::abs(v), 1.0f);
  EXPECT_NE(pcm[0], pcm[800]) << "different latents, different channels";
}

TEST(AudioDecoder, ChannelsDoNotMeet) {
  const Goldens goldens("audio");
  const std::vector<float> rows = values_of(goldens.at("decode37.rows"));
  std::vector<float> swapped(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), rows.end());
  swapped.insert(swapped.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2));
  const std::vector<float> pcm = decoded(goldens.at("decode37.rows"));
  const std::vector<float> other = decoded(Tensor(swapped.data(), {74, 32}, DType::f32));
  const std::size_t half = pcm.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    ASSERT_EQ(pcm[i], other[half + i]);
    ASSERT_EQ(pcm[half + i], other[i]);
  }
}

TEST(AudioDecoder, RefusesAnotherFilter) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  WeightSet weights = nano_weights(Component::audio_vae);
  const std::string name = "decoder.resblocks.1.activations.2.upsample.filter";
  std::vector<float> taps = values_of(weights.at(name));
  taps[3] += 1e-3f;
  weights.add(name, Tensor(taps.data(), {1, 1, 12}, DType::f32));
  EXPECT_THROW(AudioDecoder(*machine, *q, nano_config().audio_vae, weights), UserError);
}

AudioHealth health_of(std::vector<float> left, std::vector<float> right) {
  std::vector<float> pcm = left;
  pcm.insert(pcm.end(), right.begin(), right.end());
  return audio_health(Tensor(pcm.data(), {2, static_cast<std::int64_t>(left.size())}, DType::f32));
}

TEST(AudioHealth, SaysWhatIsWrong) {
  const std::vector<float> tone{0.1f, -0.2f, 0.3f}, silence{0.0f, 0.0f, 0.0f}, stuck{-1.0f, -1.0f, -1.0f};
  EXPECT_TRUE(health_of(tone, tone).good());
  EXPECT_EQ(health_of(tone, tone).text(), "");
  EXPECT_EQ(health_of(silence, silence).text(), "silent");
  EXPECT_EQ(health_of(stuck, tone).text(), "constant");
  EXPECT_EQ(health_of({1e-5f, -1e-5f, 0}, {0, 1e-6f, 0}).text(), "silent");
  EXPECT_EQ(health_of({0.1f, NAN, 0}, tone).text(), "not finite");
  EXPECT_EQ(health_of({0.1f, INFINITY, 0}, tone).text(), "not finite");
}

}  // namespace
}  // namespace h3::test
