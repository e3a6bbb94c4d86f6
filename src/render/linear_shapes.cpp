#include "render/linear_shapes.h"

namespace h3 {

namespace {

void add_transformer(std::vector<LinearShape>& shapes, const TransformerConfig& c, DType dtype) {
  const auto plain = [&](std::int64_t n, std::int64_t k) { shapes.push_back({k, n, dtype, dtype, std::nullopt}); };
  const auto biased = [&](std::int64_t n, std::int64_t k, DType type) { shapes.push_back({k, n, type, type, type}); };
  plain(3 * c.inner(), c.hidden);
  plain(c.hidden, c.inner());
  plain(2 * c.ffn, c.hidden);
  plain(c.hidden, c.ffn);
  biased(c.hidden, c.text_dim, dtype);
  biased(18 * c.hidden, c.time_embed, dtype);
  biased(2 * c.hidden, c.time_embed, dtype);
  // The float32 islands (spec/dit.md 4.1).
  biased(c.time_hidden, c.freq_dim, DType::f32);
  biased(c.time_embed, c.time_hidden, DType::f32);
  biased(c.hidden, c.video_row(), DType::f32);
  biased(c.hidden, c.audio_channels, DType::f32);
  biased(c.video_row(), c.hidden, DType::f32);
  biased(c.audio_channels, c.hidden, DType::f32);
}

void add_text(std::vector<LinearShape>& shapes, const TextConfig& c, DType dtype) {
  const auto plain = [&](std::int64_t n, std::int64_t k) { shapes.push_back({k, n, dtype, dtype, std::nullopt}); };
  plain(c.heads * c.head_dim, c.hidden);
  plain(c.kv_heads * c.head_dim, c.hidden);
  plain(c.hidden, c.heads * c.head_dim);
  plain(c.ffn, c.hidden);
  plain(c.hidden, c.ffn);
}

void add_video(std::vector<LinearShape>& shapes, const VideoVaeConfig& c, DType dtype) {
  const std::int64_t w = c.decoder_width();
  const auto biased = [&](std::int64_t n, std::int64_t k, DType type) { shapes.push_back({k, n, type, type, type}); };
  biased(c.latent_channels, c.latent_channels, dtype);
  biased(3 * w, w, dtype);
  biased(w, w, dtype);
  biased(2 * c.decoder_ffn_mult * w, w, dtype);
  biased(w, c.decoder_ffn_mult * w, dtype);
  biased(w, c.latent_channels, DType::f32);
  const std::int64_t values = c.ratio_t() * c.ratio_s() * c.ratio_s() * c.out_channels;
  if (dtype == DType::f16)  // rows as Operators::split_halves leaves them
    shapes.push_back({3 * w, values, dtype, DType::f32, DType::f32});
  else
    biased(values, w, dtype);
}

void add_vision(std::vector<LinearShape>& shapes, const VisionConfig& c, DType dtype) {
  const auto biased = [&](std::int64_t n, std::int64_t k) { shapes.push_back({k, n, dtype, dtype, dtype}); };
  const std::int64_t merged = c.merge * c.merge * c.hidden;
  biased(c.hidden, c.in_channels * c.temporal_patch * c.patch * c.patch);
  biased(3 * c.hidden, c.hidden);
  biased(c.hidden, c.hidden);
  biased(c.ffn, c.hidden);
  biased(c.hidden, c.ffn);
  biased(merged, merged);
  biased(c.out_hidden, merged);
}

// The audio encoder's; its "pooling" averages heads and runs of features into the latent channels.
void add_audio(std::vector<LinearShape>& shapes, const AudioVaeConfig& c) {
  const std::int64_t wide = c.latent_dim, narrow = c.latent_channels;
  const auto add = [&](std::int64_t n, std::int64_t k, bool bias) {
    shapes.push_back({k, n, DType::f32, DType::f32, bias ? std::optional(DType::f32) : std::nullopt});
  };
  add(3 * wide, wide, true);
  add(narrow, wide, false);
  add(narrow, narrow, true);
  add(narrow, wide, true);
  add(2 * narrow, narrow, true);
  add(narrow, 2 * narrow, true);
}

}  // namespace

std::vector<LinearShape> linear_shapes(const ModelConfig& config, Precision precision, VaeProfile profile) {
  std::vector<LinearShape> shapes;
  const DType dtype = precision == Precision::f32 ? DType::f32 : DType::bf16;
  add_transformer(shapes, config.transformer, dtype);
  add_text(shapes, config.text, dtype);
  add_vision(shapes, config.text.vision, dtype);
  add_video(shapes, config.video_vae, profile == VaeProfile::F ? DType::f32 : DType::f16);
  add_audio(shapes, config.audio_vae);
  return shapes;
}

}  // namespace h3
