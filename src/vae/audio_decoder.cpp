#include "vae/audio_decoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "sampling/latent_rows.h"
#include "weights/tensor_plan.h"

namespace h3 {

namespace {

constexpr std::int64_t kChannels = 2;  // stereo
constexpr float kFilterTolerance = 1e-6f;
constexpr float kSilence = 1e-4f;

bool is_filter(const std::string& name) {
  return name.ends_with(".filter");
}

// The decoder's weights, but not the 2 filters of each activation, which are all one.
WeightSet decoder_weights(const WeightSet& weights) {
  WeightSet part;
  for (const auto& [name, tensor] : weights.tensors())
    if ((name.starts_with("decoder.") || name.starts_with("dec_in_proj.")) && !is_filter(name)) part.add(name, tensor);
  return part;
}

// The stored filter, which every activation shares; asserts that it is the designed one (spec/vae.md 17).
std::vector<float> shared_filter(const WeightSet& weights) {
  std::vector<float> filter = audio_filter();
  const std::vector<float> designed = filter;
  bool stored = false;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (!is_filter(name)) continue;
    CHECK_EQ(tensor.elements(), static_cast<std::int64_t>(designed.size()));
    const float* taps = tensor.as<float>();
    for (std::size_t i = 0; i < designed.size(); ++i)
      if (!(std::abs(taps[i] - designed[i]) <= kFilterTolerance) || (stored && taps[i] != filter[i]))
        throw UserError("audio autoencoder", name, fmt::format("tap {} is {}", i, taps[i]),
                        fmt::format("{}, the same in every activation", designed[i]));
    filter.assign(taps, taps + designed.size());
    stored = true;
  }
  return filter;
}

}  // namespace

std::string AudioHealth::text() const {
  std::string text;
  const auto say = [&](bool is, const char* word) {
    if (is) text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
  };
  say(!finite, "not finite");
  say(silent, "silent");
  say(constant && !silent, "constant");
  return text;
}

AudioHealth audio_health(const Tensor& pcm) {
  AudioHealth health;
  health.silent = true;
  for (std::int64_t c = 0; c < pcm.size(0); ++c) {
    const Tensor channel = pcm.at(c);
    const float* x = channel.as<float>();
    bool moves = false;
    for (std::int64_t i = 0; i < channel.size(0); ++i) {
      health.finite = health.finite && std::isfinite(x[i]);
      health.silent = health.silent && std::abs(x[i]) < kSilence;
      moves = moves || x[i] != x[0];
    }
    health.constant = health.constant || !moves;
  }
  return health;
}

// The buffers of one decode: each holds the largest [batch, channels, length] of any stage.
struct AudioDecoder::Room {
  Arena arena;
  Tensor input, raised, inner, outer;
  std::vector<Tensor> blocks;

  // Elements of the largest activation: channels halve and lengths grow by the rate, stage by stage.
  static std::int64_t largest(const AudioVaeConfig& c, std::int64_t latents) {
    std::int64_t channels = c.decoder_dim, length = latents;
    std::int64_t most = std::max(c.latent_dim, c.decoder_dim) * latents;
    for (const std::int64_t rate : c.decoder_rates) {
      channels /= 2;
      length *= rate;
      most = std::max(most, channels * length);
    }
    return kChannels * most;
  }

  Room(Arena memory, const AudioVaeConfig& c, std::int64_t latents) : arena(std::move(memory)) {
    const std::int64_t n = largest(c, latents);
    for (Tensor* t : {&input, &raised, &inner, &outer}) *t = arena.take({n}, DType::f32);
    for (std::size_t j = 0; j < c.resblock_kernels.size(); ++j) blocks.push_back(arena.take({n}, DType::f32));
  }
};

static Tensor shaped(const Tensor& room, Shape shape) {
  CHECK_LE(shape.elements(), room.elements());
  return Tensor(room.data, shape, room.dtype, room.place);
}

// [batch, channels, length] as [batch * channels, length].
static Tensor as_matrix(const Tensor& x) {
  return x.reshape({x.size(0) * x.size(1), x.size(2)});
}

std::size_t AudioDecoder::working_bytes(const AudioVaeConfig& config, std::int64_t latents) {
  return Room(Arena(), config, latents).arena.peak();
}

AudioDecoder::AudioDecoder(Machine& machine, Queue& q, const AudioVaeConfig& config, const WeightSet& weights)
    : machine_(machine), operators_(machine.operators()), config_(config) {
  const std::vector<float> filter = shared_filter(weights);
  std::vector<WeightSet> groups;
  groups.push_back(decoder_weights(weights));
  weights_ = std::make_unique<WeightGroups>(machine, q, std::move(groups), Residency::resident);
  filter_buffer_ = Buffer(machine, filter.size() * sizeof(float), machine.place());
  filter_ = filter_buffer_.tensor({static_cast<std::int64_t>(filter.size())}, DType::f32);
  machine.copy(q, Tensor(const_cast<float*>(filter.data()), filter_.shape, DType::f32), filter_);
  q.wait();
}

void AudioDecoder::conv(Queue& q, const std::string& name, std::int64_t dilation, const Tensor& x, const Tensor& y) {
  const LinearWeights w = weights_->use(q, 0).linear(name);
  Conv1dShape shape;
  shape.dilation = dilation;
  shape.padding = dilation * (w.weight.size(2) - 1) / 2;
  operators_.conv1d(q, x, w.weight, w.bias, shape, y);
}

void AudioDecoder::activation(Queue& q, const std::string& name, const Tensor& x, const Tensor& y) {
  const WeightSet& w = weights_->use(q, 0);
  operators_.snake_beta(q, x, w.at(name + ".act.alpha"), w.at(name + ".act.beta"), filter_, y);
}

void AudioDecoder::amp_block(Queue& q, const std::string& name, std::size_t kernel, const Tensor& x, const Tensor& y,
                             Room& room) {
  const std::vector<std::int64_t>& dilations = config_.resblock_dilations[kernel];
  const Tensor inner = shaped(room.inner, x.shape), outer = shaped(room.outer, x.shape);
  for (std::size_t c = 0; c < dilations.size(); ++c) {
    // The first round reads the stage's input and leaves it for the other blocks; later rounds add to `y` in place.
    const Tensor& from = c == 0 ? x : y;
    activation(q, fmt::format("{}.activations.{}", name, 2 * c), from, inner);
    conv(q, fmt::format("{}.convs1.{}", name, c), dilations[c], inner, outer);
    activation(q, fmt::format("{}.activations.{}", name, 2 * c + 1), outer, inner);
    const Tensor& to = c == 0 ? y : outer;
    conv(q, fmt::format("{}.convs2.{}", name, c), 1, inner, to);
    operators_.add(q, as_matrix(y), as_matrix(c == 0 ? x : outer));
  }
}

Tensor AudioDecoder::stage(Queue& q, std::size_t i, const Tensor& x, Room& room) {
  const std::int64_t rate = config_.decoder_rates[i];
  const LinearWeights w = weights_->use(q, 0).linear(fmt::format("decoder.ups.{}.0", i));
  const Shape shape{x.size(0), w.weight.size(1), x.size(2) * rate};
  const Tensor raised = shaped(room.raised, shape);
  Conv1dShape up;
  up.stride = rate;
  up.padding = (w.weight.size(2) - rate) / 2;
  operators_.conv1d_transposed(q, x, w.weight, w.bias, up, raised);

  std::vector<Tensor> sums;
  for (std::size_t j = 0; j < room.blocks.size(); ++j) {
    sums.push_back(shaped(room.blocks[j], shape));
    amp_block(q, fmt::format("decoder.resblocks.{}", i * room.blocks.size() + j), j, raised, sums.back(), room);
  }
  const Tensor y = shaped(room.input, shape);
  operators_.mean_of(q, sums, y);
  return y;
}

void AudioDecoder::decode(Queue& q, const Tensor& rows, const Tensor& pcm) {
  const std::int64_t channels = config_.latent_channels, latents = rows.size(0) / kChannels;
  CHECK_EQ(rows.size(0), kChannels * latents);
  CHECK_EQ(rows.size(1), channels);
  CHECK_EQ(pcm.elements(), kChannels * config_.hop() * latents);

  std::vector<float> values(static_cast<std::size_t>(rows.elements()));
  const Tensor latent(values.data(), {kChannels, channels, latents}, DType::f32);
  audio_latent_from_rows(rows, latent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(latents) % static_cast<std::size_t>(channels);
    const float scaled = values[i] * config_.latents_std[c];
    values[i] = scaled + config_.latents_mean[c];
  }

  Room room(Arena(machine_, working_bytes(config_, latents)), config_, latents);
  const Tensor z = shaped(room.inner, latent.shape);
  const Tensor trunk = shaped(room.raised, {kChannels, config_.latent_dim, latents});
  Tensor x = shaped(room.input, {kChannels, config_.decoder_dim, latents});
  machine_.copy(q, latent, z);
  conv(q, "dec_in_proj", 1, z, trunk);
  conv(q, "decoder.conv_pre", 1, trunk, x);
  for (std::size_t i = 0; i < config_.decoder_rates.size(); ++i) x = stage(q, i, x, room);
  const Tensor active = shaped(room.inner, x.shape);
  const Tensor wave = shaped(room.outer, {kChannels, 1, x.size(2)});
  activation(q, "decoder.activation_post", x, active);
  conv(q, "decoder.conv_post", 1, active, wave);
  operators_.clamp(q, as_matrix(wave), -1.0f, 1.0f);
  machine_.copy(q, as_matrix(wave), pcm);
  q.wait();
}

}  // namespace h3
