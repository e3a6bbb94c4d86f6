#include "weights/tensor_plan.h"

namespace h3 {

// spec/text.md 4.1
static void add_vision_tower(PlanBuilder& b, const VisionConfig& v) {
  const std::string tower = "model.visual";
  b.linear(tower + ".patch_embed.proj", {v.hidden, v.in_channels, v.temporal_patch, v.patch, v.patch}, true);
  b.add(tower + ".pos_embed.weight", {v.positions, v.hidden}, Role::embedding);
  for (std::int64_t i = 0; i < v.depth; ++i) {
    const std::string block = fmt::format("{}.blocks.{}", tower, i);
    b.norm(block + ".norm1", v.hidden, true);
    b.linear(block + ".attn.qkv", {3 * v.hidden, v.hidden}, true);
    b.linear(block + ".attn.proj", {v.hidden, v.hidden}, true);
    b.norm(block + ".norm2", v.hidden, true);
    b.linear(block + ".mlp.linear_fc1", {v.ffn, v.hidden}, true);
    b.linear(block + ".mlp.linear_fc2", {v.hidden, v.ffn}, true);
  }
  const std::int64_t merged = v.hidden * v.merge * v.merge;
  const auto merger = [&](const std::string& name, std::int64_t norm_width) {
    b.norm(name + ".norm", norm_width, true);
    b.linear(name + ".linear_fc1", {merged, merged}, true);
    b.linear(name + ".linear_fc2", {v.out_hidden, merged}, true);
  };
  merger(tower + ".merger", v.hidden);
  for (std::size_t i = 0; i < v.deepstack.size(); ++i)
    merger(fmt::format("{}.deepstack_merger_list.{}", tower, i), merged);
}

// spec/text.md 5.1
static void add_layer(PlanBuilder& b, const TextConfig& c, const std::string& layer) {
  b.norm(layer + ".input_layernorm", c.hidden, false);
  b.linear(layer + ".self_attn.q_proj", {c.heads * c.head_dim, c.hidden}, false);
  b.linear(layer + ".self_attn.k_proj", {c.kv_heads * c.head_dim, c.hidden}, false);
  b.linear(layer + ".self_attn.v_proj", {c.kv_heads * c.head_dim, c.hidden}, false);
  b.norm(layer + ".self_attn.q_norm", c.head_dim, false);
  b.norm(layer + ".self_attn.k_norm", c.head_dim, false);
  b.linear(layer + ".self_attn.o_proj", {c.hidden, c.heads * c.head_dim}, false);
  b.norm(layer + ".post_attention_layernorm", c.hidden, false);
  b.linear(layer + ".mlp.gate_proj", {c.ffn, c.hidden}, false);
  b.linear(layer + ".mlp.up_proj", {c.ffn, c.hidden}, false);
  b.linear(layer + ".mlp.down_proj", {c.hidden, c.ffn}, false);
}

ComponentPlan plan_text_encoder(const TextConfig& c) {
  PlanBuilder b(Component::text_encoder, DType::bf16);
  b.add("model.language_model.embed_tokens.weight", {c.vocab, c.hidden}, Role::embedding);
  add_vision_tower(b, c.vision);
  for (std::int64_t i = 0; i < c.state; ++i) add_layer(b, c, fmt::format("model.language_model.layers.{}", i));
  return b.take();
}

}  // namespace h3
