// Everything about a model that its configuration files say: hyper-parameters of the components, schedules, canvas
// rule. The nano model and the released one differ in these numbers alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace h3 {

// spec/dit.md 1.1
struct TransformerConfig {
  std::int64_t hidden = 0, layers = 0, refiner_layers = 0, heads = 0, head_dim = 0, ffn = 0;
  std::int64_t video_channels = 0, audio_channels = 0;
  std::array<std::int64_t, 3> patch{1, 2, 2};
  std::int64_t text_dim = 0, freq_dim = 0, time_hidden = 0, time_embed = 0;
  std::int64_t rope_freqs = 0;  // per axis
  double rope_theta = 10000;
  float norm_eps = 1e-5f, qk_norm_eps = 1e-5f, final_norm_eps = 1e-5f;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t video_row() const { return video_channels * patch[0] * patch[1] * patch[2]; }
  bool operator==(const TransformerConfig&) const = default;
};

// spec/text.md 4
struct VisionConfig {
  std::int64_t depth = 0, hidden = 0, heads = 0, ffn = 0, in_channels = 3, out_hidden = 0, positions = 0;
  std::int64_t patch = 16, temporal_patch = 2, merge = 2;
  std::vector<std::int64_t> deepstack;
  bool operator==(const VisionConfig&) const = default;
};

// spec/text.md 5
struct TextConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  float norm_eps = 1e-6f;
  double rope_theta = 5e6;
  std::array<std::int64_t, 3> mrope_section{};
  std::int64_t image_token = 0, video_token = 0, vision_start = 0, vision_end = 0;
  std::int64_t state = 50;  // layers executed; the output of the last is the conditioning
  VisionConfig vision;
  bool operator==(const TextConfig&) const = default;
};

// spec/vae.md 2
struct VideoVaeConfig {
  std::vector<std::int64_t> widths, spatial_down, temporal_down;
  std::int64_t blocks_per_level = 2, in_channels = 3, out_channels = 3, latent_channels = 24, norm_groups = 32;
  float norm_eps = 1e-6f;
  std::int64_t clip_length = 17, token_drop = 3, tile = 256, tile_overlap = 64;
  std::int64_t decoder_layers = 0, decoder_heads = 0, decoder_head_dim = 0, decoder_ffn_mult = 4, registers = 4;
  float decoder_eps = 1e-5f;
  double rope_ratio = 0.75, rope_theta = 100;
  std::vector<float> latents_mean, latents_std;
  std::int64_t decoder_width() const { return decoder_heads * decoder_head_dim; }
  std::int64_t ratio_s() const;  // 16: pixels per latent along a side
  std::int64_t ratio_t() const;  // 4: pixel frames per latent frame
  bool operator==(const VideoVaeConfig&) const = default;
};

// spec/vae.md 14
struct AudioVaeConfig {
  std::int64_t encoder_dim = 0, latent_dim = 0, latent_channels = 32, decoder_dim = 0, attention_heads = 8;
  std::vector<std::int64_t> encoder_rates, decoder_rates, decoder_kernels, resblock_kernels;
  std::vector<std::vector<std::int64_t>> resblock_dilations;
  std::int64_t sample_rate = 32000;
  std::vector<float> latents_mean, latents_std;
  std::int64_t hop() const;  // 800
  bool operator==(const AudioVaeConfig&) const = default;
};

struct ModelConfig {
  TransformerConfig transformer;
  TextConfig text;
  VideoVaeConfig video_vae;
  AudioVaeConfig audio_vae;
  double video_shift = 12, audio_shift = 3;
  // Canvas rule where a scene gives no size (spec/dit.md 3.1).
  std::int64_t canvas_short_edge = 768, canvas_max_pixels = 768 * 1344, reference_short_edge = 2048;
  bool operator==(const ModelConfig&) const = default;
};

// The released model's numbers (spec/dit.md 1.1, text.md 4 and 5, vae.md 2, 4, 14 and 18).
ModelConfig released_model_config();

// Refuses numbers that do not fit together or ask for what the program lacks: a UserError names `where` (the file that
// the component's numbers came from), the number and what would be right (spec/vae.md 2, 14, 20).
void check_config(const TransformerConfig& c, const std::string& where);
void check_config(const TextConfig& c, const std::string& where);
void check_config(const VideoVaeConfig& c, const std::string& where);
void check_config(const AudioVaeConfig& c, const std::string& where);
// The same across components: widths that meet, schedules, canvas.
void check_config(const ModelConfig& c, const std::string& where);

}  // namespace h3
