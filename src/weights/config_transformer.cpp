#include "weights/config_object.h"
#include "weights/model_paths.h"

namespace h3 {

// Where the two layouts call a number differently (spec/dit.md 1.1).
struct TransformerFields {
  const char *class_name, *refiner_layers, *ffn, *video_channels, *audio_channels, *freq_dim, *time_hidden, *rope_freqs;
};
constexpr TransformerFields kDiffusers = {
    "MiniMaxH3Transformer3DModel", "num_refiner_layers", "ffn_dim", "in_channels", "audio_in_channels", "freq_dim",
    "time_embed_hidden_dim",       "rope_freq_dim"};
constexpr TransformerFields kOriginal = {
    "MiniMaxH3DiTModel", "token_refiner_num_layers", "ffn_hidden_size",        "latents_dim",
    "audio_latents_dim", "timestep_input_dim",       "time_embed_hidden_size", "rope_inv_freq_len"};

TransformerConfig read_transformer_config(const std::filesystem::path& folder, Layout layout) {
  const TransformerFields& names = layout == Layout::diffusers ? kDiffusers : kOriginal;
  ConfigObject o = ConfigObject::read(folder / "config.json");
  o.require("_class_name", names.class_name);
  TransformerConfig c;
  c.hidden = o.integer("hidden_size");
  c.layers = o.integer("num_layers");
  c.refiner_layers = o.integer(names.refiner_layers, 0);
  c.heads = o.integer("num_attention_heads");
  c.head_dim = o.integer("attention_head_dim");
  c.ffn = o.integer(names.ffn);
  c.video_channels = o.integer(names.video_channels);
  c.audio_channels = o.integer(names.audio_channels);
  const auto patch = o.integers("patch_size", 3);
  std::copy(patch.begin(), patch.end(), c.patch.begin());
  c.text_dim = o.integer("text_dim");
  c.freq_dim = o.integer(names.freq_dim);
  c.time_hidden = o.integer(names.time_hidden);
  c.time_embed = o.integer("time_embed_dim");
  c.rope_freqs = o.integer(names.rope_freqs);
  // The original files do not state the base.
  c.rope_theta = layout == Layout::diffusers ? o.number("rope_theta") : o.number_or("rope_theta", c.rope_theta);
  c.norm_eps = static_cast<float>(o.number("norm_eps"));
  c.qk_norm_eps = static_cast<float>(o.number("qk_norm_eps"));
  c.final_norm_eps = static_cast<float>(o.number("final_norm_eps"));
  if (layout == Layout::original) {
    o.allow("adaln_out_features", 18 * c.hidden);
    o.allow("final_adaln_out_features", 2 * c.hidden);
  }
  o.finish();
  check_config(c, o.file());
  return c;
}

}  // namespace h3
