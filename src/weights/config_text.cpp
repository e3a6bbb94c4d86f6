#include "weights/config_object.h"
#include "weights/model_paths.h"

namespace h3 {

static VisionConfig read_vision(ConfigObject o) {
  o.require("hidden_act", "gelu_pytorch_tanh");
  o.ignore({"model_type", "initializer_range", "dtype", "torch_dtype"});
  VisionConfig c;
  c.depth = o.integer("depth");
  c.hidden = o.integer("hidden_size");
  c.heads = o.integer("num_heads");
  c.ffn = o.integer("intermediate_size");
  c.in_channels = o.integer("in_channels");
  c.out_hidden = o.integer("out_hidden_size");
  c.positions = o.integer("num_position_embeddings");
  c.patch = o.integer("patch_size");
  c.temporal_patch = o.integer("temporal_patch_size");
  c.merge = o.integer("spatial_merge_size");
  c.deepstack = o.integers("deepstack_visual_indexes");
  o.finish();
  return c;
}

// Older files keep the rotary numbers in rope_scaling and rope_theta, newer ones in rope_parameters.
static void read_rope(ConfigObject& o, TextConfig& c) {
  const bool newer = o.has("rope_parameters");
  ConfigObject rope = o.object(newer ? "rope_parameters" : "rope_scaling");
  c.rope_theta = newer ? rope.number("rope_theta") : o.number("rope_theta");
  const auto sections = rope.integers("mrope_section", 3);
  std::copy(sections.begin(), sections.end(), c.mrope_section.begin());
  rope.allow("mrope_interleaved", true);
  rope.allow("rope_type", "default");
  rope.allow("type", "default");
  rope.finish();
  o.ignore({"rope_theta", "rope_scaling"});
}

static void read_language_model(ConfigObject o, TextConfig& c) {
  o.require("hidden_act", "silu");
  o.allow("attention_bias", false);
  o.ignore({"attention_dropout", "bos_token_id", "eos_token_id", "pad_token_id", "dtype", "torch_dtype",
            "initializer_range", "max_position_embeddings", "model_type", "use_cache", "tie_word_embeddings"});
  c.hidden = o.integer("hidden_size");
  c.layers = o.integer("num_hidden_layers");
  c.heads = o.integer("num_attention_heads");
  c.kv_heads = o.integer("num_key_value_heads");
  c.head_dim = o.integer("head_dim");
  c.ffn = o.integer("intermediate_size");
  c.vocab = o.integer("vocab_size");
  c.norm_eps = static_cast<float>(o.number("rms_norm_eps"));
  read_rope(o, c);
  o.finish();
}

TextConfig read_text_config(const std::filesystem::path& folder, std::int64_t state) {
  ConfigObject o = ConfigObject::read(folder / "config.json");
  o.require("model_type", "qwen3_vl");
  o.ignore({"architectures", "tie_word_embeddings", "transformers_version", "dtype", "torch_dtype"});
  TextConfig c;
  c.state = state;
  c.image_token = o.integer("image_token_id", 0);
  c.video_token = o.integer("video_token_id", 0);
  c.vision_start = o.integer("vision_start_token_id", 0);
  c.vision_end = o.integer("vision_end_token_id", 0);
  read_language_model(o.object("text_config"), c);
  c.vision = read_vision(o.object("vision_config"));
  o.finish();
  check_config(c, o.file());
  return c;
}

}  // namespace h3
