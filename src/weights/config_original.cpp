#include <charconv>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "weights/config_object.h"
#include "weights/model_paths.h"

namespace h3 {

namespace fs = std::filesystem;

// Geometry and statistics lie in video_vae/config.json, the network in the folder that it names.
static void read_video_geometry(ConfigObject& o, VideoVaeConfig& c) {
  o.require("_class_name", "MiniMaxH3VideoVAE");
  c.clip_length = o.integer("vae_clip_length");
  c.token_drop = o.integer("vae_token_drop", 0);
  c.tile = o.integer("vae_tile_size");
  c.tile_overlap = o.integer("vae_tile_overlap_min", 0);
  o.require("vae_encoder_tiling", 1);
  o.require("vae_decoder_tiling", 1);
  c.latent_channels = o.integer("latent_channels");
  c.latents_mean = o.floats("latents_mean", static_cast<std::size_t>(c.latent_channels));
  c.latents_std = o.floats("latents_std", static_cast<std::size_t>(c.latent_channels));
  o.allow("source_path", "source");
  o.allow("source_safetensors_path", "model.safetensors");
  o.ignore({"mode", "auto_map", "source_class_name", "vae_parallel_tiling", "vae_encoder_parallel",
            "vae_decoder_parallel", "vae_chunk_dim"});
  o.finish();
}

static void read_vit(ConfigObject o, VideoVaeConfig& c) {
  c.decoder_layers = o.integer("num_layers");
  c.decoder_heads = o.integer("heads");
  c.decoder_head_dim = o.integer("dim_head");
  c.rope_ratio = o.number("rope_dim_ratio");
  c.rope_theta = o.number("rope_theta");
  // Code defaults of the release, which a smaller model may state.
  c.decoder_ffn_mult = o.integer_or("ffn_mult", c.decoder_ffn_mult);
  c.registers = o.integer_or("num_register_tokens", c.registers);
  c.decoder_eps = static_cast<float>(o.number_or("eps", 1e-5));
  o.require("ffn_activation_fn", "silu");
  o.require("ffn_use_gated", true);
  o.require("norm_affine", true);
  o.require("norm_type", "rms_norm");
  o.require("qk_norm_affine", false);
  o.require("qk_norm_type", "rms_norm");
  o.finish();
}

static void read_video_network(const fs::path& folder, VideoVaeConfig& c) {
  ConfigObject o = ConfigObject::read(folder / "config.json");
  const std::int64_t width = o.integer("ch");
  for (std::int64_t multiple : o.integers("ch_mult")) c.widths.push_back(width * multiple);
  c.spatial_down = o.integers("space_down");
  c.temporal_down = o.integers("time_down");
  c.blocks_per_level = o.integer("num_res_blocks");
  c.in_channels = o.integer("in_channels");
  c.out_channels = o.integer("out_ch");
  c.norm_groups = o.integer_or("norm_num_groups", c.norm_groups);
  c.norm_eps = static_cast<float>(o.number_or("norm_eps", 1e-6));
  o.require("z_channels", c.latent_channels);
  o.require("embed_dim", c.latent_channels);
  o.allow("vae_ratio", 16);
  o.allow("vae_ratio_t", 4);
  o.require("padding_mode", "reflect");
  o.allow("padding_mode_t", "zeros");
  for (const char* key : {"causal_encoder", "use_3d_conv", "use_t_isolated_gn", "use_vit_decoder"})
    o.require(key, true);
  o.require("causal_decoder", false);
  o.allow("pixel_norm_type", "imagenet");
  o.allow("scaling_factor", 1.0);
  o.allow("shift_factor", 0.0);
  o.ignore({"num_res_blocks_decoder", "space_up", "time_up", "zq_ch_decoder", "zq_ch_encoder"});
  read_vit(o.object("vit_decoder_kwargs"), c);
  o.finish();
}

static VideoVaeConfig read_video_vae(const fs::path& folder) {
  VideoVaeConfig c;
  ConfigObject geometry = ConfigObject::read(folder / "config.json");
  read_video_geometry(geometry, c);
  read_video_network(folder / "source", c);
  check_config(c, geometry.file());
  return c;
}

// The value of `key: NUMBER` in config.yaml, which holds nothing but such lines.
static std::optional<std::int64_t> yaml_number(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, key.size() + 1, key + ":") != 0) continue;
    const std::size_t digits = line.find_first_not_of(' ', begin + key.size() + 1);
    std::int64_t value = 0;
    if (digits == std::string::npos ||
        std::from_chars(line.data() + digits, line.data() + line.size(), value).ec != std::errc())
      return std::nullopt;
    return value;
  }
  return std::nullopt;
}

// config.yaml repeats four numbers; it must agree with the other two files (spec/vae.md 14).
static void check_yaml(const fs::path& file, const AudioVaeConfig& c) {
  const std::string text = read_file(file);
  const std::pair<const char*, std::int64_t> expected[] = {{"sr", c.sample_rate},
                                                           {"decoder_dim", c.decoder_dim},
                                                           {"audio_channel", 1},
                                                           {"vae_latent_channels", c.latent_channels}};
  for (const auto& [key, value] : expected) {
    const auto stated = yaml_number(text, key);
    if (stated != value)
      throw UserError(file.string(), fmt::format("model_config.{}", key), stated ? std::to_string(*stated) : "missing",
                      fmt::format("expected {} as in metadata.json", value));
  }
}

static void read_audio_metadata(const fs::path& file, AudioVaeConfig& c) {
  ConfigObject top = ConfigObject::read(file);
  ConfigObject metadata = top.object("metadata");
  ConfigObject o = metadata.object("kwargs");
  o.require("decoder_type", "bigvgan");
  o.require("attn_proj", true);
  c.encoder_dim = o.integer("encoder_dim");
  c.encoder_rates = o.integers("encoder_rates");
  // Absent in the released constructor call, where it defaults to the encoder's last width.
  c.latent_dim = o.integer_or("latent_dim", c.encoder_dim << c.encoder_rates.size());
  c.latent_channels = o.integer("vae_latent_channels");
  c.decoder_dim = o.integer("decoder_dim");
  c.decoder_rates = o.integers("decoder_rates");
  for (std::int64_t rate : c.decoder_rates) c.decoder_kernels.push_back(2 * rate - rate % 2);
  c.sample_rate = o.integer("sample_rate");
  // Constants of the release, which a smaller model may state.
  c.attention_heads = o.integer_or("num_attention_heads", 8);
  c.resblock_kernels = {3, 7, 11};
  c.resblock_dilations = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  if (o.has("resblock_kernel_sizes")) c.resblock_kernels = o.integers("resblock_kernel_sizes");
  if (o.has("resblock_dilation_sizes")) c.resblock_dilations = o.integer_lists("resblock_dilation_sizes");
  o.finish();
  metadata.finish();
  top.finish();
}

static AudioVaeConfig read_audio_vae(const fs::path& folder) {
  AudioVaeConfig c;
  read_audio_metadata(folder / "metadata.json", c);
  ConfigObject o = ConfigObject::read(folder / "config.json");
  o.require("_class_name", "MiniMaxH3AudioVAE");
  o.require("latent_channels", c.latent_channels);
  o.require("sample_rate", c.sample_rate);
  o.allow("output_channel", 2);
  o.allow("source_config_path", "config.yaml");
  o.allow("source_safetensors_path", "model.safetensors");
  o.allow("source_metadata_path", "metadata.json");
  o.ignore({"auto_map"});
  c.latents_mean = o.floats("latents_mean", static_cast<std::size_t>(c.latent_channels));
  c.latents_std = o.floats("latents_std", static_cast<std::size_t>(c.latent_channels));
  o.finish();
  check_config(c, o.file());
  std::error_code ec;
  if (fs::exists(folder / "config.yaml", ec)) check_yaml(folder / "config.yaml", c);
  return c;
}

ModelConfig read_original_config(const ModelPaths& paths) {
  ModelConfig c;
  if (!paths.index.empty()) {
    ConfigObject o = ConfigObject::read(paths.index);
    if (o.has("_minimax_h3")) {
      ConfigObject h3 = o.object("_minimax_h3");
      if (h3.has("sigma_shift_scales")) {
        ConfigObject shifts = h3.object("sigma_shift_scales");
        c.video_shift = shifts.number("video");
        c.audio_shift = shifts.number("audio");
      }
    }
    read_canvas(o, c);
  }
  c.transformer = read_transformer_config(paths.any_transformer(), Layout::original);
  c.text = read_text_config(paths.text_encoder, c.text.state);
  c.video_vae = read_video_vae(paths.video_vae);
  c.audio_vae = read_audio_vae(paths.audio_vae);
  check_config(c, paths.root.string());
  return c;
}

}  // namespace h3
