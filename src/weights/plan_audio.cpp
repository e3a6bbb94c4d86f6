#include <cmath>
#include <numbers>

#include "weights/tensor_plan.h"

namespace h3 {

// A convolution under weight norm: one magnitude a row of the first axis.
static void add_normed(PlanBuilder& b, const std::string& name, Shape v, std::int64_t bias) {
  b.add(name + ".weight_g", {v[0], 1, 1}, Role::magnitude);
  b.add(name + ".weight_v", v, Role::direction);
  if (bias > 0) b.add(name + ".bias", {bias}, Role::bias);
}

static void add_activation(PlanBuilder& b, const std::string& name, std::int64_t channels) {
  b.add(name + ".act.alpha", {channels}, Role::snake_log);
  b.add(name + ".act.beta", {channels}, Role::snake_log);
  for (const char* filter : {".upsample.filter", ".downsample.lowpass.filter"})
    b.add(name + filter, {1, 1, 12}, Role::filter).values = audio_filter();
}

static void add_decoder(PlanBuilder& b, const AudioVaeConfig& c) {
  b.linear("dec_in_proj", {c.latent_dim, c.latent_channels, 1}, true);
  add_normed(b, "decoder.conv_pre", {c.decoder_dim, c.latent_dim, 7}, c.decoder_dim);
  std::int64_t channels = c.decoder_dim;
  for (std::size_t i = 0; i < c.decoder_rates.size(); ++i) {
    add_normed(b, fmt::format("decoder.ups.{}.0", i), {channels, channels / 2, c.decoder_kernels[i]}, channels / 2);
    channels /= 2;
    for (std::size_t j = 0; j < c.resblock_kernels.size(); ++j) {
      const std::string block = fmt::format("decoder.resblocks.{}", i * c.resblock_kernels.size() + j);
      const std::size_t convs = c.resblock_dilations[j].size();
      for (const char* list : {"convs1", "convs2"})
        for (std::size_t k = 0; k < convs; ++k)
          add_normed(b, fmt::format("{}.{}.{}", block, list, k), {channels, channels, c.resblock_kernels[j]}, channels);
      for (std::size_t a = 0; a < 2 * convs; ++a)
        add_activation(b, fmt::format("{}.activations.{}", block, a), channels);
    }
  }
  add_activation(b, "decoder.activation_post", channels);
  add_normed(b, "decoder.conv_post", {1, channels, 7}, 0);
}

static void add_encoder(PlanBuilder& b, const AudioVaeConfig& c) {
  std::int64_t d = c.encoder_dim;
  add_normed(b, "encoder.block.0", {d, 1, 7}, d);
  for (std::size_t s = 1; s <= c.encoder_rates.size(); ++s) {
    const std::string stage = fmt::format("encoder.block.{}", s);
    for (int r = 0; r < 3; ++r) {
      const std::string unit = fmt::format("{}.block.{}", stage, r);
      b.add(unit + ".block.0.alpha", {1, d, 1}, Role::snake);
      add_normed(b, unit + ".block.1", {d, d, 7}, d);
      b.add(unit + ".block.2.alpha", {1, d, 1}, Role::snake);
      add_normed(b, unit + ".block.3", {d, d, 1}, d);
    }
    b.add(stage + ".block.3.alpha", {1, d, 1}, Role::snake);
    add_normed(b, stage + ".block.4", {2 * d, d, 2 * c.encoder_rates[s - 1]}, 2 * d);
    d *= 2;
  }
  const std::size_t last = c.encoder_rates.size() + 1;
  b.add(fmt::format("encoder.block.{}.alpha", last), {1, d, 1}, Role::snake);
  add_normed(b, fmt::format("encoder.block.{}", last + 1), {c.latent_dim, d, 3}, c.latent_dim);
}

// The causal attention that narrows the trunk to the latent channels.
static void add_projection(PlanBuilder& b, const AudioVaeConfig& c) {
  const std::int64_t wide = c.latent_dim, narrow = c.latent_channels;
  b.norm("pre_block.norm1", wide, true);
  b.add("pre_block.attn.qkv.weight", {3 * wide, wide}, Role::weight);
  b.add("pre_block.attn.q_bias", {wide}, Role::bias);
  b.add("pre_block.attn.v_bias", {wide}, Role::bias);
  b.add("pre_block.attn.zero_k_bias", {wide}, Role::zero);
  b.linear("pre_block.attn.proj", {narrow, narrow}, true);
  b.norm("pre_block.norm3", wide, true);
  b.linear("pre_block.proj", {narrow, wide}, true);
  b.norm("pre_block.norm2", narrow, true);
  b.norm("pre_block.mlp.norm", narrow, true);
  b.linear("pre_block.mlp.w0", {2 * narrow, narrow}, true);
  b.linear("pre_block.mlp.w1", {2 * narrow, narrow}, true);
  b.linear("pre_block.mlp.w2", {narrow, 2 * narrow}, true);
  b.linear("mean_proj", {narrow, narrow, 1}, true);
  b.linear("logs_proj", {narrow, narrow, 1}, true);
}

ComponentPlan plan_audio_vae(const AudioVaeConfig& c) {
  PlanBuilder b(Component::audio_vae, DType::f32);
  add_decoder(b, c);
  add_encoder(b, c);
  add_projection(b, c);
  return b.take();
}

// The modified Bessel function I0 by its series, which converges fast for the arguments here (below 5).
static double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

std::vector<float> audio_filter() {
  constexpr int taps = 12;
  const double attenuation = 2.285 * 5 * std::numbers::pi * 1.2 + 7.95, beta = 0.1102 * (attenuation - 8.7);
  std::vector<double> f(taps);
  double sum = 0;
  for (int n = 0; n < taps; ++n) {
    const double position = 2.0 * n / (taps - 1) - 1, x = std::numbers::pi * 0.5 * (n - 5.5);
    f[static_cast<std::size_t>(n)] =
        0.5 * bessel_i0(beta * std::sqrt(1 - position * position)) / bessel_i0(beta) * std::sin(x) / x;
    sum += f[static_cast<std::size_t>(n)];
  }
  std::vector<float> filter;
  for (double v : f) filter.push_back(static_cast<float>(v / sum));
  return filter;
}

}  // namespace h3
