#include <cmath>

#include "weights/tensor_plan.h"

namespace h3 {

// A block without its AdaLN projection; refiner blocks have none.
static void add_block(PlanBuilder& b, const TransformerConfig& c, const std::string& name, const std::string& other) {
  b.norm(name + ".norm1", c.hidden, false, other + ".norm1");
  b.qkv(name + ".attn.qkv_proj.weight", c.heads, c.head_dim, c.hidden, other + ".attn", ".weight");
  b.norm(name + ".attn.q_norm", c.head_dim, false, other + ".attn.norm_q");
  b.norm(name + ".attn.k_norm", c.head_dim, false, other + ".attn.norm_k");
  b.linear(name + ".attn.out_proj", {c.hidden, c.inner()}, false, other + ".attn.to_out.0");
  b.norm(name + ".norm2", c.hidden, false, other + ".norm2");
  b.gated(name + ".mlp.fc1.weight", {2 * c.ffn, c.hidden}, Role::weight, other + ".ff.net.0.proj.weight");
  b.linear(name + ".mlp.fc2", {c.hidden, c.ffn}, false, other + ".ff.net.2");
}

static void add_adaln(PlanBuilder& b, const std::string& name, std::int64_t out, std::int64_t in,
                      const std::string& other) {
  b.add(name + ".weight", {out, in}, Role::adaln, other + ".weight");
  b.add(name + ".bias", {out}, Role::adaln_bias, other + ".bias");
}

ComponentPlan plan_transformer(const TransformerConfig& c) {
  PlanBuilder b(Component::transformer, DType::f32);
  b.linear("video_patch_proj", {c.hidden, c.video_row()}, true, "proj_in");
  b.linear("audio_patch_proj", {c.hidden, c.audio_channels}, true, "audio_proj_in");
  b.linear("time_embedder.proj_in", {c.time_hidden, c.freq_dim}, true, "time_embedder.linear_1");
  b.linear("time_embedder.proj_out", {c.time_embed, c.time_hidden}, true, "time_embedder.linear_2");
  PlannedTensor& frequencies = b.add("rope.inv_freq", {c.rope_freqs}, Role::frequencies);
  frequencies.values = rope_frequencies(c);
  frequencies.diffusers.clear();
  b.use_dtype(DType::bf16);
  b.linear("condition_proj", {c.hidden, c.text_dim}, true, "context_embedder");
  for (std::int64_t i = 0; i < c.refiner_layers; ++i)
    add_block(b, c, fmt::format("token_refiner.blocks.{}", i), fmt::format("token_refiner.refiner_blocks.{}", i));
  b.norm("token_refiner.final_norm", c.hidden, false);
  for (std::int64_t i = 0; i < c.layers; ++i)
    add_block(b, c, fmt::format("blocks.{}", i), fmt::format("transformer_blocks.{}", i));
  b.norm("final_layer.norm", c.hidden, false, "norm_out.norm");
  b.use_dtype(DType::f32);
  b.linear("final_layer.video_out", {c.video_row(), c.hidden}, true, "proj_out");
  b.linear("final_layer.audio_out", {c.audio_channels, c.hidden}, true, "audio_proj_out");
  // Last and together, since they are needed only before the first step (spec/dit.md 4.9).
  b.use_dtype(DType::bf16);
  add_adaln(b, "final_layer.adaln_proj.linear", 2 * c.hidden, c.time_embed, "norm_out.linear");
  for (std::int64_t i = 0; i < c.layers; ++i)
    add_adaln(b, fmt::format("blocks.{}.adaln_proj.linear", i), 18 * c.hidden, c.time_embed,
              fmt::format("transformer_blocks.{}.adaln_proj.linear", i));
  return b.take();
}

std::vector<float> rope_frequencies(const TransformerConfig& c) {
  std::vector<float> inv;
  for (std::int64_t i = 0; i < c.rope_freqs; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * c.rope_freqs);
    // The power is evaluated in double and rounded once: a correctly rounded powf, whatever the C library's is.
    const double power = std::pow(static_cast<double>(static_cast<float>(c.rope_theta)), static_cast<double>(exponent));
    inv.push_back(1.0f / static_cast<float>(power));
  }
  return inv;
}

}  // namespace h3
