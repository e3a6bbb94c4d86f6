#include "vae/video_decoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace h3 {

namespace {

DType operand_type(VaeProfile profile) {
  return profile == VaeProfile::R ? DType::f16 : DType::f32;
}

float value_of(const Tensor& t, std::int64_t i) {
  return t.dtype == DType::f32 ? t.as<float>()[i] : to_f32(t.as<f16_t>()[i]);
}

// Adds host tensors to a weight set in the dtype that a profile wants (spec/vae.md 8.2): as they are where they have
// it, else rounded once into memory that the set keeps.
class TypedWeights {
 public:
  explicit TypedWeights(const WeightSet& from) : from_(from) {}

  TypedWeights& take(const std::string& name, DType dtype) {
    const Tensor& t = from_.at(name);
    if (t.dtype == dtype) {
      set_.add(name, t);
      return *this;
    }
    H3_CHECK(t.dtype == DType::f32 || t.dtype == DType::f16, name);
    const Tensor converted = keep(t.shape, dtype);
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      if (dtype == DType::f32) converted.as<float>()[i] = value_of(t, i);
      if (dtype == DType::f16) converted.as<f16_t>()[i] = to_f16(value_of(t, i));
    }
    set_.add(name, converted);
    return *this;
  }
  // A matrix as [high | low | high] in f16, which multiplies what Operators::split_halves makes.
  TypedWeights& take_halves(const std::string& name) {
    const Tensor& t = from_.at(name);
    const std::int64_t rows = t.size(0), k = t.size(1);
    const Tensor halves = keep({rows, 3 * k}, DType::f16);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < k; ++i) {
        const float v = value_of(t, r * k + i);
        f16_t* out = halves.as<f16_t>() + r * 3 * k + i;
        out[0] = out[2 * k] = to_f16(v);
        out[k] = to_f16(v - to_f32(out[0]));
      }
    set_.add(name, halves);
    return *this;
  }
  TypedWeights& take_linear(const std::string& name, DType dtype) {
    return take(name + ".weight", dtype).take(name + ".bias", dtype);
  }
  WeightSet set() {
    set_.own(converted_);
    return std::move(set_);
  }

 private:
  Tensor keep(const Shape& shape, DType dtype) {
    auto& memory = converted_->emplace_back(static_cast<std::size_t>(shape.elements()) * size_of(dtype));
    return Tensor(memory.data(), shape, dtype);
  }

  const WeightSet& from_;
  WeightSet set_;
  std::shared_ptr<std::vector<std::vector<std::byte>>> converted_ =
      std::make_shared<std::vector<std::vector<std::byte>>>();
};

WeightSet block_weights(const WeightSet& weights, std::int64_t b, DType type) {
  const WeightSet block = below(weights, fmt::format("decoder.transformer_blocks.{}.", b));
  TypedWeights typed(block);
  for (const char* name : {"norm2.weight", "scale1", "scale2"}) typed.take(name, DType::f32);
  for (const char* name : {"attn.to_qkv", "attn.to_out", "ff.w1", "ff.w2"}) typed.take_linear(name, type);
  return typed.set();
}

std::string first_norm(std::size_t block) {
  return fmt::format("decoder.transformer_blocks.{}.norm1.weight", block);
}

WeightSet end_weights(const VideoVaeConfig& config, const WeightSet& weights, DType type) {
  TypedWeights typed(weights);
  for (std::int64_t b = 0; b < config.decoder_layers; ++b)
    typed.take(first_norm(static_cast<std::size_t>(b)), DType::f32);
  for (const char* name : {"decoder.x_embedder", "decoder.norm_out"}) typed.take_linear(name, DType::f32);
  typed.take_linear("post_quant_conv", type).take("decoder.proj_out.bias", DType::f32);
  if (type == DType::f16)
    typed.take_halves("decoder.proj_out.weight");
  else
    typed.take("decoder.proj_out.weight", DType::f32);
  return typed.set();
}

// The same tensor as a matrix [rows, rest]: a 1x1x1 convolution is a linear layer over channels.
LinearWeights as_linear(LinearWeights w) {
  const std::int64_t rows = w.weight.size(0);
  w.weight = w.weight.reshape({rows, w.weight.elements() / rows});
  return w;
}

}  // namespace

// What a call takes of the arena, in the order it takes it. The planner runs the same code without memory.
struct VideoDecoder::Layout {
  const VideoVaeConfig& c;
  DType type;
  std::int64_t tiles, tokens, rows;  // of the call; rows: all tokens with the extra ones

  Layout(const VideoVaeConfig& config, VaeProfile profile, const TokenGrid& grid, std::int64_t count)
      : c(config),
        type(operand_type(profile)),
        tiles(count),
        tokens(count * grid.tokens()),
        rows(count * (grid.tokens() + config.registers + 1)) {}

  Tensor stream(Arena& a) const { return a.take({rows, c.decoder_width()}, DType::f32); }
  // The input of a linear layer of a block; between two of them it takes the attention's output.
  Tensor normed(Arena& a) const { return a.take({rows, c.decoder_width()}, type); }

  struct Embedding {
    Tensor latents, quantized, quantized_f32, embedded, rounded;
  };
  Embedding embedding(Arena& a) const {
    return {a.take({tokens, c.latent_channels}, type), a.take({tokens, c.latent_channels}, type),
            a.take({tokens, c.latent_channels}, DType::f32), a.take({tokens, c.decoder_width()}, DType::f32),
            a.take({tokens, c.decoder_width()}, type)};
  }
  struct Attention {
    Tensor qkv, branch;
  };
  Attention attention(Arena& a) const {
    const std::int64_t width = c.decoder_width();
    return {a.take({rows, 3 * width}, type), a.take({rows, width}, type)};
  }
  struct FeedForward {
    Tensor gate_value, gated, branch;
  };
  FeedForward feed_forward(Arena& a) const {
    const std::int64_t width = c.decoder_width(), inner = width * c.decoder_ffn_mult;
    return {a.take({rows, 2 * inner}, type), a.take({rows, inner}, type), a.take({rows, width}, type)};
  }
  // `halves`: the normed rows as operands of a half type; without memory where they are taken as they are.
  struct Head {
    Tensor normed, values, halves;
  };
  Head head(Arena& a) const {
    const std::int64_t values = c.out_channels * c.ratio_t() * c.ratio_s() * c.ratio_s();
    Head head{a.take({tokens, c.decoder_width()}, DType::f32), a.take({tokens, values}, DType::f32), Tensor()};
    if (type == DType::f16) head.halves = a.take({tokens, 3 * c.decoder_width()}, type);
    return head;
  }
};

VideoDecoder::VideoDecoder(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights,
                           VaeProfile profile, Residency residency)
    : machine_(machine),
      operators_(machine.operators()),
      config_(config),
      profile_(profile),
      type_(operand_type(profile)),
      extra_(config.registers + 1) {
  rope_frequencies(config);
  std::vector<WeightSet> ends, blocks;
  ends.push_back(end_weights(config, weights, type_));
  for (std::int64_t b = 0; b < config.decoder_layers; ++b) blocks.push_back(block_weights(weights, b, type_));
  ends_ = std::make_unique<WeightGroups>(machine, q, std::move(ends), Residency::resident);
  blocks_ = std::make_unique<WeightGroups>(machine, q, std::move(blocks), residency);

  const Tensor& registers = weights.at("decoder.register_tokens");
  const std::int64_t width = config.decoder_width();
  CHECK_EQ(registers.elements(), config.registers * width);
  std::vector<float> extra(static_cast<std::size_t>(extra_ * width), 0.0f);
  for (std::int64_t i = 0; i < registers.elements(); ++i) extra[static_cast<std::size_t>(i)] = value_of(registers, i);
  extra_tokens_buffer_ = Buffer(machine, extra.size() * sizeof(float), machine.place());
  extra_tokens_ = extra_tokens_buffer_.tensor({extra_, width}, DType::f32);
  machine.copy(q, Tensor(extra.data(), extra_tokens_.shape, DType::f32), extra_tokens_);
  q.wait();
}

std::size_t VideoDecoder::working_bytes(const VideoVaeConfig& config, VaeProfile profile, const TokenGrid& grid,
                                        std::int64_t max_tiles) {
  const Layout layout(config, profile, grid, max_tiles);
  Arena counted;
  layout.stream(counted);
  const std::size_t behind_stream = counted.mark();
  layout.embedding(counted);
  counted.rewind(behind_stream);
  layout.normed(counted);
  const std::size_t behind_normed = counted.mark();
  layout.attention(counted);
  counted.rewind(behind_normed);
  layout.feed_forward(counted);
  counted.rewind(behind_stream);
  layout.head(counted);
  const auto table = static_cast<std::size_t>(layout.rows * 3 * rope_frequencies(config)) * size_of(layout.type);
  return counted.peak() + 2 * table;
}

void VideoDecoder::prepare(Queue& q, const TokenGrid& grid, std::int64_t max_tiles) {
  if (grid == grid_ && max_tiles <= max_tiles_) return;
  q.wait();
  grid_ = grid;
  max_tiles_ = max_tiles;
  const RopeTable table = decoder_rope(config_, grid, extra_, profile_);
  const std::size_t cells = table.cos.size(), copies = static_cast<std::size_t>(max_tiles);
  const std::size_t table_bytes = copies * cells * size_of(type_);
  std::vector<std::byte> host(2 * table_bytes);
  const auto write = [&](const std::vector<float>& values, std::size_t base) {
    for (std::size_t i = 0; i < copies * cells; ++i) {
      const float v = values[i % cells];
      if (type_ == DType::f32) reinterpret_cast<float*>(host.data())[base + i] = v;
      if (type_ == DType::f16) reinterpret_cast<f16_t*>(host.data())[base + i] = to_f16(v);
    }
  };
  write(table.cos, 0);
  write(table.sin, copies * cells);

  arena_ = Arena();
  rope_buffer_ = Buffer(machine_, host.size(), machine_.place());
  const Tensor both = rope_buffer_.tensor({2, max_tiles * table.rows, table.columns}, type_);
  machine_.copy(q, Tensor(host.data(), both.shape, type_), both);
  cos_ = both.at(0);
  sin_ = both.at(1);
  arena_ = Arena(machine_, working_bytes(config_, profile_, grid, max_tiles) - 2 * table_bytes);
  q.wait();
}

void VideoDecoder::decode(Queue& q, const Tensor& latents, const Tensor& pixels) {
  const std::int64_t tiles = pixels.size(0);
  CHECK_LE(tiles, max_tiles_);
  CHECK_EQ(latents.size(0), tiles * grid_.tokens());
  CHECK_EQ(latents.size(1), config_.latent_channels);
  arena_.rewind(0);
  const Tensor stream = Layout(config_, profile_, grid_, tiles).stream(arena_);
  const std::size_t behind_stream = arena_.mark();
  embed(q, latents, stream);
  arena_.rewind(behind_stream);
  const Tensor normed = Layout(config_, profile_, grid_, tiles).normed(arena_);
  if (blocks_->size() > 0)
    operators_.rms_norm(q, stream, ends_->use(q, 0).at(first_norm(0)), config_.decoder_eps, NormRounding::once, normed);
  for (std::size_t b = 0; b < blocks_->size(); ++b) block(q, b, stream, normed);
  arena_.rewind(behind_stream);
  to_pixels(q, stream, pixels);
}

// The embedding is computed in float32 from values rounded to the operand type, and rounded to it, before the residual
// stream takes it (spec/vae.md 8); in profile F both roundings are the identity.
void VideoDecoder::embed(Queue& q, const Tensor& latents, const Tensor& stream) {
  const WeightSet& w = ends_->use(q, 0);
  const std::int64_t tokens = grid_.tokens(), tiles = latents.size(0) / tokens, rows = tokens + extra_;
  const Layout::Embedding s = Layout(config_, profile_, grid_, tiles).embedding(arena_);
  operators_.cast(q, latents, s.latents);
  operators_.linear(q, s.latents, as_linear(w.linear("post_quant_conv")), s.quantized);
  operators_.cast(q, s.quantized, s.quantized_f32);
  operators_.linear(q, s.quantized_f32, w.linear("decoder.x_embedder"), s.embedded);
  operators_.cast(q, s.embedded, s.rounded);
  for (std::int64_t i = 0; i < tiles; ++i) {
    operators_.cast(q, s.rounded.rows(i * tokens, (i + 1) * tokens), stream.rows(i * rows, i * rows + tokens));
    operators_.copy_rows(q, extra_tokens_, stream.rows(i * rows + tokens, (i + 1) * rows));
  }
}

void VideoDecoder::block(Queue& q, std::size_t b, const Tensor& stream, const Tensor& normed) {
  const WeightSet& w = blocks_->use(q, b);
  const float eps = config_.decoder_eps;
  const std::size_t mark = arena_.mark();
  const Tensor attended = attend(q, w, normed);
  operators_.scaled_add_norm(q, stream, attended, w.at("scale1"), w.at("norm2.weight"), eps, normed);
  arena_.rewind(mark);
  const Tensor fed = feed_forward(q, w, normed);
  if (b + 1 < blocks_->size())
    operators_.scaled_add_norm(q, stream, fed, w.at("scale2"), ends_->use(q, 0).at(first_norm(b + 1)), eps, normed);
  else
    operators_.scaled_add(q, stream, fed, w.at("scale2"));
  arena_.rewind(mark);
}

Tensor VideoDecoder::attend(Queue& q, const WeightSet& w, const Tensor& normed) {
  const std::int64_t tiles = normed.size(0) / (grid_.tokens() + extra_);
  const std::int64_t heads = config_.decoder_heads, d = config_.decoder_head_dim;
  const Layout::Attention s = Layout(config_, profile_, grid_, tiles).attention(arena_);
  operators_.linear(q, normed, w.linear("attn.to_qkv"), s.qkv);

  // Per head q, k and v lie behind each other (spec/vae.md 3.2).
  const Tensor by_head = s.qkv.split(1, heads);
  const auto part = [&](std::int64_t i) { return by_head.slice(2, i * d, (i + 1) * d); };
  const Tensor query = part(0), key = part(1), value = part(2);
  Operators::HeadNormRope rope;
  rope.eps = config_.decoder_eps;
  rope.cos = cos_.rows(0, normed.size(0));
  rope.sin = sin_.rows(0, normed.size(0));
  rope.round_products = profile_ == VaeProfile::R;
  operators_.head_norm_rope(q, query, rope);
  operators_.head_norm_rope(q, key, rope);

  Operators::Attention attention;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(d));
  attention.sequences = tiles;
  attention.sanitize = true;
  operators_.attention(q, query, key, value, normed.split(1, heads), attention);
  operators_.linear(q, normed, w.linear("attn.to_out"), s.branch);
  return s.branch;
}

Tensor VideoDecoder::feed_forward(Queue& q, const WeightSet& w, const Tensor& normed) {
  const std::int64_t tiles = normed.size(0) / (grid_.tokens() + extra_);
  const Layout::FeedForward s = Layout(config_, profile_, grid_, tiles).feed_forward(arena_);
  operators_.linear_swiglu(q, normed, w.linear("ff.w1"), s.gate_value, s.gated);
  operators_.linear(q, s.gated, w.linear("ff.w2"), s.branch);
  return s.branch;
}

// The projection to pixels is a product of float32 rows; with half operands it runs on the matrix units.
void VideoDecoder::to_pixels(Queue& q, const Tensor& stream, const Tensor& pixels) {
  const WeightSet& w = ends_->use(q, 0);
  const std::int64_t tokens = grid_.tokens(), tiles = pixels.size(0), rows = tokens + extra_;
  const Layout::Head s = Layout(config_, profile_, grid_, tiles).head(arena_);
  const Operators::Patch patch{grid_.t, grid_.h, grid_.w, config_.ratio_t(), config_.ratio_s(), config_.ratio_s()};
  for (std::int64_t i = 0; i < tiles; ++i)
    operators_.layer_norm(q, stream.rows(i * rows, i * rows + tokens), w.at("decoder.norm_out.weight"),
                          w.at("decoder.norm_out.bias"), config_.decoder_eps,
                          s.normed.rows(i * tokens, (i + 1) * tokens));
  if (s.halves) operators_.split_halves(q, s.normed, s.halves);
  operators_.linear(q, s.halves ? s.halves : s.normed, w.linear("decoder.proj_out"), s.values);
  for (std::int64_t i = 0; i < tiles; ++i)
    operators_.unpatchify(q, s.values.rows(i * tokens, (i + 1) * tokens), patch, pixels.at(i));
}

}  // namespace h3
