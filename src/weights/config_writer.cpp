#include "weights/config_writer.h"

#include <fmt/format.h>

namespace h3 {

using Json = nlohmann::ordered_json;

// The shortest decimal that reads back as this float32: "1e-05", not 9.99999974e-06.
static Json short_number(float value) {
  return Json::parse(fmt::format("{}", value));
}

static Json short_numbers(const std::vector<float>& values) {
  Json list = Json::array();
  for (float v : values) list.push_back(short_number(v));
  return list;
}

static Json transformer_json(const TransformerConfig& c) {
  return {{"_class_name", "MiniMaxH3Transformer3DModel"},
          {"attention_head_dim", c.head_dim},
          {"audio_in_channels", c.audio_channels},
          {"ffn_dim", c.ffn},
          {"final_norm_eps", short_number(c.final_norm_eps)},
          {"freq_dim", c.freq_dim},
          {"hidden_size", c.hidden},
          {"in_channels", c.video_channels},
          {"norm_eps", short_number(c.norm_eps)},
          {"num_attention_heads", c.heads},
          {"num_layers", c.layers},
          {"num_refiner_layers", c.refiner_layers},
          {"patch_size", c.patch},
          {"qk_norm_eps", short_number(c.qk_norm_eps)},
          {"rope_freq_dim", c.rope_freqs},
          {"rope_theta", c.rope_theta},
          {"text_dim", c.text_dim},
          {"time_embed_dim", c.time_embed},
          {"time_embed_hidden_dim", c.time_hidden}};
}

static Json vision_json(const VisionConfig& c) {
  return {{"deepstack_visual_indexes", c.deepstack},
          {"depth", c.depth},
          {"hidden_act", "gelu_pytorch_tanh"},
          {"hidden_size", c.hidden},
          {"in_channels", c.in_channels},
          {"intermediate_size", c.ffn},
          {"model_type", "qwen3_vl"},
          {"num_heads", c.heads},
          {"num_position_embeddings", c.positions},
          {"out_hidden_size", c.out_hidden},
          {"patch_size", c.patch},
          {"spatial_merge_size", c.merge},
          {"temporal_patch_size", c.temporal_patch}};
}

static Json text_json(const TextConfig& c) {
  const Json rope = {{"mrope_interleaved", true}, {"mrope_section", c.mrope_section}, {"rope_type", "default"}};
  const Json language = {{"attention_bias", false},
                         {"dtype", "bfloat16"},
                         {"head_dim", c.head_dim},
                         {"hidden_act", "silu"},
                         {"hidden_size", c.hidden},
                         {"intermediate_size", c.ffn},
                         {"max_position_embeddings", 262144},
                         {"model_type", "qwen3_vl_text"},
                         {"num_attention_heads", c.heads},
                         {"num_hidden_layers", c.layers},
                         {"num_key_value_heads", c.kv_heads},
                         {"rms_norm_eps", short_number(c.norm_eps)},
                         {"rope_scaling", rope},
                         {"rope_theta", c.rope_theta},
                         {"vocab_size", c.vocab}};
  return {{"architectures", {"Qwen3VLForConditionalGeneration"}},
          {"image_token_id", c.image_token},
          {"model_type", "qwen3_vl"},
          {"text_config", language},
          {"tie_word_embeddings", false},
          {"video_token_id", c.video_token},
          {"vision_config", vision_json(c.vision)},
          {"vision_end_token_id", c.vision_end},
          {"vision_start_token_id", c.vision_start}};
}

static Json video_json(const VideoVaeConfig& c) {
  return {{"_class_name", "AutoencoderKLMiniMaxH3"},
          {"block_out_channels", c.widths},
          {"clip_length", c.clip_length},
          {"decoder_attention_head_dim", c.decoder_head_dim},
          {"decoder_ffn_mult", c.decoder_ffn_mult},
          {"decoder_norm_eps", short_number(c.decoder_eps)},
          {"decoder_num_attention_heads", c.decoder_heads},
          {"decoder_num_layers", c.decoder_layers},
          {"decoder_num_register_tokens", c.registers},
          {"decoder_rope_dim_ratio", c.rope_ratio},
          {"decoder_rope_theta", c.rope_theta},
          {"in_channels", c.in_channels},
          {"latent_channels", c.latent_channels},
          {"latents_mean", short_numbers(c.latents_mean)},
          {"latents_std", short_numbers(c.latents_std)},
          {"layers_per_block", c.blocks_per_level},
          {"norm_eps", short_number(c.norm_eps)},
          {"norm_num_groups", c.norm_groups},
          {"out_channels", c.out_channels},
          {"spatial_downsample_factors", c.spatial_down},
          {"spatial_padding_mode", "reflect"},
          {"temporal_downsample_factors", c.temporal_down},
          {"token_drop", c.token_drop}};
}

static Json audio_json(const AudioVaeConfig& c) {
  return {{"_class_name", "AutoencoderKLMiniMaxH3Audio"},
          {"decoder_dim", c.decoder_dim},
          {"decoder_kernel_sizes", c.decoder_kernels},
          {"decoder_rates", c.decoder_rates},
          {"encoder_dim", c.encoder_dim},
          {"encoder_rates", c.encoder_rates},
          {"latent_channels", c.latent_channels},
          {"latent_dim", c.latent_dim},
          {"latents_mean", short_numbers(c.latents_mean)},
          {"latents_std", short_numbers(c.latents_std)},
          {"num_attention_heads", c.attention_heads},
          {"resblock_dilation_sizes", c.resblock_dilations},
          {"resblock_kernel_sizes", c.resblock_kernels},
          {"sampling_rate", c.sample_rate}};
}

static Json scheduler_json(double shift) {
  return {{"_class_name", "MiniMaxH3Scheduler"}, {"shift", shift}};
}

// One partition serves all tasks: `transformer_ref` points at the folder `transformer`.
static Json index_json(const ModelConfig& c) {
  Json index = {{"_class_name", "MiniMaxH3ModularPipeline"}, {"_blocks_class_name", "MiniMaxH3Blocks"}};
  constexpr std::array<std::array<const char*, 4>, 9> entries = {
      {{"text_encoder", "transformers", "Qwen3VLForConditionalGeneration", "text_encoder"},
       {"tokenizer", "transformers", "Qwen2TokenizerFast", "tokenizer"},
       {"processor", "transformers", "Qwen3VLProcessor", "processor"},
       {"vae", "diffusers", "AutoencoderKLMiniMaxH3", "vae"},
       {"audio_vae", "diffusers", "AutoencoderKLMiniMaxH3Audio", "audio_vae"},
       {"transformer", "diffusers", "MiniMaxH3Transformer3DModel", "transformer"},
       {"transformer_ref", "diffusers", "MiniMaxH3Transformer3DModel", "transformer"},
       {"scheduler", "diffusers", "MiniMaxH3Scheduler", "scheduler"},
       {"audio_scheduler", "diffusers", "MiniMaxH3Scheduler", "audio_scheduler"}}};
  for (const auto& [name, library, type, folder] : entries)
    index[name] = Json::array({library, type, {{"type_hint", Json::array({library, type})}, {"subfolder", folder}}});
  index["canvas_short_edge"] = c.canvas_short_edge;
  index["canvas_max_pixels"] = c.canvas_max_pixels;
  index["reference_image_short_edge"] = c.reference_short_edge;
  index["text_encoder_layer"] = c.text.state;
  return index;
}

std::vector<std::pair<std::string, Json>> config_files(const ModelConfig& c) {
  return {{"modular_model_index.json", index_json(c)},
          {"model_index.json", index_json(c)},
          {"transformer/config.json", transformer_json(c.transformer)},
          {"text_encoder/config.json", text_json(c.text)},
          {"vae/config.json", video_json(c.video_vae)},
          {"audio_vae/config.json", audio_json(c.audio_vae)},
          {"scheduler/scheduler_config.json", scheduler_json(c.video_shift)},
          {"audio_scheduler/scheduler_config.json", scheduler_json(c.audio_shift)}};
}

}  // namespace h3
