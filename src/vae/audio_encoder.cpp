#include "vae/audio_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "parallel/shards.h"

namespace h3 {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr std::int64_t kChannels = 2;       // stereo
constexpr std::int64_t kResidualUnits = 3;  // with dilations 1, 3, 9

// The attention's output is averaged over heads, and then over runs of consecutive channels (spec/vae.md 16). Both are
// one linear layer with a constant weight.
std::vector<float> pooling_weight(const AudioVaeConfig& c) {
  const std::int64_t wide = c.latent_dim, narrow = c.latent_channels, head = wide / c.attention_heads;
  const std::int64_t run = head / narrow;
  const float share = 1.0f / static_cast<float>(c.attention_heads * run);
  std::vector<float> weight(static_cast<std::size_t>(narrow * wide), 0.0f);
  for (std::int64_t i = 0; i < narrow; ++i)
    for (std::int64_t h = 0; h < c.attention_heads; ++h)
      for (std::int64_t j = 0; j < run; ++j)
        weight[static_cast<std::size_t>(i * wide + h * head + i * run + j)] = share;
  return weight;
}

// The encoder's weights, with two that are made here: the fused bias (q, 0, v) of qkv, and the pooling.
WeightSet encoder_weights(const AudioVaeConfig& c, const WeightSet& weights) {
  WeightSet part;
  for (const auto& [name, tensor] : weights.tensors())
    if (name.starts_with("encoder.") || name.starts_with("pre_block.") || name.starts_with("mean_proj."))
      part.add(name, tensor);
  auto made = std::make_shared<std::array<std::vector<float>, 2>>();
  std::vector<float>& bias = (*made)[0];
  bias.assign(static_cast<std::size_t>(3 * c.latent_dim), 0.0f);
  const auto wide = static_cast<std::size_t>(c.latent_dim);
  std::copy_n(weights.at("pre_block.attn.q_bias").as<float>(), wide, bias.data());
  std::copy_n(weights.at("pre_block.attn.v_bias").as<float>(), wide, bias.data() + 2 * wide);
  (*made)[1] = pooling_weight(c);
  part.add("pre_block.attn.qkv.bias", Tensor(bias.data(), {3 * c.latent_dim}, DType::f32));
  part.add("pooling.weight", Tensor((*made)[1].data(), {c.latent_channels, c.latent_dim}, DType::f32));
  part.own(made);
  return part;
}

Tensor shaped(const Tensor& room, Shape shape) {
  CHECK_LE(shape.elements(), room.elements());
  return Tensor(room.data, shape, room.dtype, room.place);
}

}  // namespace

// What encoding a channel takes: three buffers that any activation of the convolutions fits in, and the rows of the
// projection behind them.
struct AudioEncoder::Room {
  Arena arena;
  Tensor x, y, z;                                    // elements of the largest activation
  Tensor rows, normed, qkv, attended;                // [latents, trunk width or three of them]
  Tensor narrow, branch, normed_once, normed_twice;  // [latents, channels]
  Tensor gate, value, product;                       // [latents, 2 channels]
  Tensor index;                                      // 0, 1, 2, ...

  Room(Arena memory, const AudioVaeConfig& c, std::int64_t latents) : arena(std::move(memory)) {
    std::int64_t length = latents * c.hop(), channels = c.encoder_dim, most = channels * length;
    for (const std::int64_t rate : c.encoder_rates) {
      length /= rate;
      channels *= 2;
      most = std::max(most, channels * length);
    }
    most = std::max(most, c.latent_dim * latents);
    for (Tensor* t : {&x, &y, &z}) *t = arena.take({most}, DType::f32);
    for (Tensor* t : {&rows, &normed, &attended}) *t = arena.take({latents, c.latent_dim}, DType::f32);
    qkv = arena.take({latents, 3 * c.latent_dim}, DType::f32);
    for (Tensor* t : {&narrow, &branch, &normed_once, &normed_twice})
      *t = arena.take({latents, c.latent_channels}, DType::f32);
    for (Tensor* t : {&gate, &value, &product}) *t = arena.take({latents, 2 * c.latent_channels}, DType::f32);
    index = arena.take({latents}, DType::i32);
  }
};

std::int64_t AudioEncoder::latents(const AudioVaeConfig& config, std::int64_t samples) {
  return (samples + config.hop() - 1) / config.hop();
}

std::size_t AudioEncoder::working_bytes(const AudioVaeConfig& config, std::int64_t samples) {
  return Room(Arena(), config, latents(config, samples)).arena.peak();
}

AudioEncoder::AudioEncoder(Machine& machine, Queue& q, const AudioVaeConfig& config, const WeightSet& weights)
    : machine_(machine), operators_(machine.operators()), config_(config) {
  std::vector<WeightSet> groups;
  groups.push_back(encoder_weights(config, weights));
  weights_ = std::make_unique<WeightGroups>(machine, q, std::move(groups), Residency::resident);
  q.wait();
}

Tensor AudioEncoder::conv(Queue& q, const std::string& name, const Conv1dShape& shape, const Tensor& x,
                          const Tensor& room) {
  const LinearWeights w = weights_->use(q, 0).linear(name);
  const std::int64_t reach = shape.dilation * (w.weight.size(2) - 1) + 1;
  const std::int64_t length = (x.size(2) + 2 * shape.padding - reach) / shape.stride + 1;
  const Tensor y = shaped(room, {1, w.weight.size(0), length});
  operators_.conv1d(q, x, w.weight, w.bias, shape, y);
  return y;
}

Tensor AudioEncoder::snake(Queue& q, const std::string& name, const Tensor& x, const Tensor& room) {
  const Tensor y = shaped(room, x.shape);
  operators_.snake(q, x, weights_->use(q, 0).at(name + ".alpha").reshape({x.size(1)}), y);
  return y;
}

// x + conv1x1(snake(conv(snake(x)))), in place in room.x.
void AudioEncoder::residual(Queue& q, const std::string& name, std::int64_t dilation, const Tensor& x, Room& room) {
  Tensor h = snake(q, name + ".block.0", x, room.y);
  h = conv(q, name + ".block.1", {1, dilation, 3 * dilation}, h, room.z);
  h = snake(q, name + ".block.2", h, room.y);
  h = conv(q, name + ".block.3", {}, h, room.z);
  operators_.add(q, x.at(0), h.at(0));
}

// [1, 1, samples] -> [1, trunk width, latents]
Tensor AudioEncoder::convolve(Queue& q, const Tensor& wave, Room& room) {
  Tensor x = conv(q, "encoder.block.0", {1, 1, 3}, wave, room.x);
  for (std::size_t s = 1; s <= config_.encoder_rates.size(); ++s) {
    const std::string stage = fmt::format("encoder.block.{}", s);
    const std::int64_t rate = config_.encoder_rates[s - 1];
    for (std::int64_t unit = 0, dilation = 1; unit < kResidualUnits; ++unit, dilation *= 3)
      residual(q, fmt::format("{}.block.{}", stage, unit), dilation, x, room);
    const Tensor active = snake(q, stage + ".block.3", x, room.y);
    x = conv(q, stage + ".block.4", {rate, 1, (rate + 1) / 2}, active, room.x);
  }
  const std::size_t last = config_.encoder_rates.size() + 1;
  const Tensor active = snake(q, fmt::format("encoder.block.{}", last), x, room.y);
  return conv(q, fmt::format("encoder.block.{}", last + 1), {1, 1, 1}, active, room.x);
}

void AudioEncoder::attend(Queue& q, Room& room) {
  const WeightSet& w = weights_->use(q, 0);
  const std::int64_t heads = config_.attention_heads, wide = config_.latent_dim;
  operators_.layer_norm(q, room.rows, w.at("pre_block.norm1.weight"), w.at("pre_block.norm1.bias"), kNormEps,
                        room.normed);
  operators_.linear(q, room.normed, w.linear("pre_block.attn.qkv"), room.qkv);
  const auto part = [&](std::int64_t i) { return room.qkv.slice(1, i * wide, (i + 1) * wide).split(1, heads); };
  Operators::Attention attention;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(wide / heads));
  attention.causal = true;
  operators_.attention(q, part(0), part(1), part(2), room.attended.split(1, heads), attention);
  operators_.linear(q, room.attended, w.linear("pooling"), room.branch);
  operators_.linear(q, room.branch, w.linear("pre_block.attn.proj"), room.normed_once);
  operators_.layer_norm(q, room.rows, w.at("pre_block.norm3.weight"), w.at("pre_block.norm3.bias"), kNormEps,
                        room.normed);
  operators_.linear(q, room.normed, w.linear("pre_block.proj"), room.narrow);
  operators_.add(q, room.narrow, room.normed_once);
}

void AudioEncoder::feed_forward(Queue& q, Room& room) {
  const WeightSet& w = weights_->use(q, 0);
  operators_.layer_norm(q, room.narrow, w.at("pre_block.norm2.weight"), w.at("pre_block.norm2.bias"), kNormEps,
                        room.normed_once);
  operators_.layer_norm(q, room.normed_once, w.at("pre_block.mlp.norm.weight"), w.at("pre_block.mlp.norm.bias"),
                        kNormEps, room.normed_twice);
  operators_.linear(q, room.normed_twice, w.linear("pre_block.mlp.w0"), room.gate);
  operators_.linear(q, room.normed_twice, w.linear("pre_block.mlp.w1"), room.value);
  operators_.activate(q, Activation::gelu_tanh, room.gate, room.gate);
  // The product of two matrices: a gated sum that starts at zero, each row with a gate of its own.
  operators_.fill_zero(q, room.product);
  operators_.gated_add(q, room.product, room.gate, room.index, room.value);
  operators_.linear(q, room.product, w.linear("pre_block.mlp.w2"), room.branch);
  operators_.add(q, room.narrow, room.branch);
}

void AudioEncoder::encode(Queue& q, const Tensor& wave, const Tensor& rows) {
  const std::int64_t count = latents(config_, wave.size(0)), wide = config_.latent_dim;
  CHECK_EQ(rows.elements(), count * config_.latent_channels);
  std::vector<float> padded(static_cast<std::size_t>(count * config_.hop()), 0.0f);
  std::memcpy(padded.data(), wave.data, wave.bytes());
  std::vector<std::int32_t> index(static_cast<std::size_t>(count));
  std::iota(index.begin(), index.end(), 0);

  Room room(Arena(machine_, working_bytes(config_, wave.size(0))), config_, count);
  machine_.copy(q, Tensor(index.data(), {count}, DType::i32), room.index);
  const Tensor samples = shaped(room.z, {1, 1, count * config_.hop()});
  machine_.copy(q, Tensor(padded.data(), samples.shape, DType::f32), samples);
  const Tensor trunk = convolve(q, samples, room);
  CHECK_EQ(trunk.size(2), count);

  // The projection works on rows: one latent each.
  std::vector<float> by_channel(static_cast<std::size_t>(count * wide)), by_row(by_channel.size());
  machine_.copy(q, trunk, Tensor(by_channel.data(), trunk.shape, DType::f32));
  q.wait();
  for (std::int64_t c = 0; c < wide; ++c)
    for (std::int64_t t = 0; t < count; ++t)
      by_row[static_cast<std::size_t>(t * wide + c)] = by_channel[static_cast<std::size_t>(c * count + t)];
  machine_.copy(q, Tensor(by_row.data(), room.rows.shape, DType::f32), room.rows);
  attend(q, room);
  feed_forward(q, room);
  LinearWeights mean = weights_->use(q, 0).linear("mean_proj");
  mean.weight = mean.weight.reshape({config_.latent_channels, config_.latent_channels});
  operators_.linear(q, room.narrow, mean, room.branch);
  machine_.copy(q, room.branch, rows);
  q.wait();
}

std::vector<AudioRows> encode_sounds(Machine& machine, Queue& q, Communicator& ranks, AudioEncoder& encoder,
                                     std::span<const Tensor> sounds, std::vector<double> shares) {
  const AudioVaeConfig& config = encoder.config();
  const std::int64_t features = config.latent_channels;
  // Unit u is channel u % 2 of sound u / 2; its rows start at offsets[u].
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 0; i < sounds.size(); ++i) {
    CHECK_EQ(sounds[i].size(0), kChannels);
    if (sounds[i].size(1) == 0) throw UserError("sound to encode", fmt::format("sound {}", i + 1), "empty", "samples");
    for (std::int64_t c = 0; c < kChannels; ++c)
      offsets.push_back(offsets.back() + AudioEncoder::latents(config, sounds[i].size(1)) * features);
  }
  if (shares.empty()) shares.assign(static_cast<std::size_t>(ranks.size()), 1.0);
  CHECK_EQ(shares.size(), static_cast<std::size_t>(ranks.size()));
  const std::vector<Range> units = deal(kChannels * static_cast<std::int64_t>(sounds.size()), shares);

  Buffer all(machine, std::max<std::size_t>(static_cast<std::size_t>(offsets.back()) * sizeof(float), 1),
             machine.place());
  const auto stretch = [&](Range r) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(r.begin)];
    const std::int64_t end = offsets[static_cast<std::size_t>(r.end)];
    return Tensor(static_cast<float*>(all.data()) + begin, {end - begin}, DType::f32, machine.place());
  };
  const Range own = units[static_cast<std::size_t>(ranks.rank())];
  for (std::int64_t u = own.begin; u < own.end; ++u) {
    const Tensor to = stretch({u, u + 1});
    std::vector<float> rows(static_cast<std::size_t>(to.elements()));
    const Tensor channel = sounds[static_cast<std::size_t>(u / kChannels)].at(u % kChannels);
    encoder.encode(q, channel, Tensor(rows.data(), {to.elements() / features, features}, DType::f32));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t c = i % static_cast<std::size_t>(features);
      rows[i] = (rows[i] - config.latents_mean[c]) / config.latents_std[c];
    }
    machine.copy(q, Tensor(rows.data(), to.shape, DType::f32), to);
    q.wait();
  }
  std::vector<Tensor> blocks;
  for (const Range& r : units) blocks.push_back(stretch(r));
  ranks.all_gather(q, blocks);

  std::vector<AudioRows> result;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(sounds.size()); ++i) {
    const Tensor from = stretch({kChannels * i, kChannels * (i + 1)});
    AudioRows rows{{from.elements() / features, features},
                   std::vector<float>(static_cast<std::size_t>(from.elements()))};
    machine.copy(q, from, Tensor(rows.values.data(), from.shape, DType::f32));
    q.wait();
    result.push_back(std::move(rows));
  }
  return result;
}

}  // namespace h3
