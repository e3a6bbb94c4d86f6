#include "weights/config_object.h"
#include "weights/model_paths.h"

namespace h3 {

namespace fs = std::filesystem;

static VideoVaeConfig read_video_vae(const fs::path& folder) {
  ConfigObject o = ConfigObject::read(folder / "config.json");
  o.require("_class_name", "AutoencoderKLMiniMaxH3");
  o.require("spatial_padding_mode", "reflect");
  VideoVaeConfig c;
  c.widths = o.integers("block_out_channels");
  c.spatial_down = o.integers("spatial_downsample_factors");
  c.temporal_down = o.integers("temporal_downsample_factors");
  c.blocks_per_level = o.integer("layers_per_block");
  c.in_channels = o.integer("in_channels");
  c.out_channels = o.integer("out_channels");
  c.latent_channels = o.integer("latent_channels");
  c.norm_groups = o.integer("norm_num_groups");
  c.norm_eps = static_cast<float>(o.number("norm_eps"));
  c.clip_length = o.integer("clip_length");
  c.token_drop = o.integer("token_drop");
  c.decoder_layers = o.integer("decoder_num_layers");
  c.decoder_heads = o.integer("decoder_num_attention_heads");
  c.decoder_head_dim = o.integer("decoder_attention_head_dim");
  c.decoder_ffn_mult = o.integer("decoder_ffn_mult");
  c.registers = o.integer("decoder_num_register_tokens");
  c.decoder_eps = static_cast<float>(o.number("decoder_norm_eps"));
  c.rope_ratio = o.number("decoder_rope_dim_ratio");
  c.rope_theta = o.number("decoder_rope_theta");
  c.latents_mean = o.floats("latents_mean", static_cast<std::size_t>(c.latent_channels));
  c.latents_std = o.floats("latents_std", static_cast<std::size_t>(c.latent_channels));
  o.finish();
  check_config(c, o.file());
  return c;
}

static AudioVaeConfig read_audio_vae(const fs::path& folder) {
  ConfigObject o = ConfigObject::read(folder / "config.json");
  o.require("_class_name", "AutoencoderKLMiniMaxH3Audio");
  AudioVaeConfig c;
  c.encoder_dim = o.integer("encoder_dim");
  c.latent_dim = o.integer("latent_dim");
  c.latent_channels = o.integer("latent_channels");
  c.decoder_dim = o.integer("decoder_dim");
  c.attention_heads = o.integer("num_attention_heads");
  c.encoder_rates = o.integers("encoder_rates");
  c.decoder_rates = o.integers("decoder_rates");
  c.decoder_kernels = o.integers("decoder_kernel_sizes");
  c.resblock_kernels = o.integers("resblock_kernel_sizes");
  c.resblock_dilations = o.integer_lists("resblock_dilation_sizes");
  c.sample_rate = o.integer("sampling_rate");
  c.latents_mean = o.floats("latents_mean", static_cast<std::size_t>(c.latent_channels));
  c.latents_std = o.floats("latents_std", static_cast<std::size_t>(c.latent_channels));
  o.finish();
  check_config(c, o.file());
  return c;
}

static double read_shift(const fs::path& file) {
  ConfigObject o = ConfigObject::read(file);
  o.require("_class_name", "MiniMaxH3Scheduler");
  const double shift = o.number("shift");
  o.finish();
  return shift;
}

void read_canvas(ConfigObject& index, ModelConfig& c) {
  c.canvas_short_edge = index.integer_or("canvas_short_edge", c.canvas_short_edge);
  c.canvas_max_pixels = index.integer_or("canvas_max_pixels", c.canvas_max_pixels);
  c.reference_short_edge = index.integer_or("reference_image_short_edge", c.reference_short_edge);
  c.text.state = index.integer_or("text_encoder_layer", c.text.state);
}

ModelConfig read_diffusers_config(const ModelPaths& paths) {
  ModelConfig c;
  if (!paths.index.empty()) {
    ConfigObject o = ConfigObject::read(paths.index);
    read_canvas(o, c);
  }
  c.transformer = read_transformer_config(paths.any_transformer(), Layout::diffusers);
  c.text = read_text_config(paths.text_encoder, c.text.state);
  c.video_vae = read_video_vae(paths.video_vae);
  c.audio_vae = read_audio_vae(paths.audio_vae);
  c.video_shift = read_shift(paths.video_scheduler);
  c.audio_shift = read_shift(paths.audio_scheduler);
  check_config(c, paths.root.string());
  return c;
}

}  // namespace h3
