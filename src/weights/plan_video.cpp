#include "weights/tensor_plan.h"

namespace h3 {

static void add_residual(PlanBuilder& b, const std::string& name, const std::string& other, std::int64_t in,
                         std::int64_t out) {
  b.norm(name + ".norm1", in, true, other + ".norm1");
  b.linear(name + ".conv1", {out, in, 3, 3, 3}, true, other + ".conv1");
  b.norm(name + ".norm2", out, true, other + ".norm2");
  b.linear(name + ".conv2", {out, out, 3, 3, 3}, true, other + ".conv2");
  if (in != out) b.linear(name + ".nin_shortcut", {out, in, 1, 1, 1}, true, other + ".conv_shortcut");
}

static void add_encoder(PlanBuilder& b, const VideoVaeConfig& c) {
  b.linear("encoder.conv_in", {c.widths.front(), c.in_channels, 3, 3, 3}, true);
  std::int64_t in = c.widths.front();
  for (std::size_t level = 0; level < c.widths.size(); ++level) {
    const std::string name = fmt::format("encoder.down.{}", level),
                      other = fmt::format("encoder.down_blocks.{}", level);
    const std::int64_t out = c.widths[level];
    for (std::int64_t i = 0; i < c.blocks_per_level; ++i)
      add_residual(b, fmt::format("{}.block.{}", name, i), fmt::format("{}.resnets.{}", other, i), i == 0 ? in : out,
                   out);
    if (c.spatial_down[level] * c.temporal_down[level] > 1)
      b.linear(name + ".downsample.conv", {out, out, 3, 3, 3}, true, other + ".downsamplers.0.conv");
    in = out;
  }
  b.norm("encoder.norm_out", in, true);
  b.linear("encoder.conv_out", {2 * c.latent_channels, in, 3, 3, 3}, true);
  b.linear("quant_conv", {2 * c.latent_channels, 2 * c.latent_channels, 1, 1, 1}, true);
}

static void add_decoder_block(PlanBuilder& b, const VideoVaeConfig& c, const std::string& block) {
  const std::int64_t width = c.decoder_width(), inner = c.decoder_ffn_mult * width;
  b.norm(block + ".norm1", width, false);
  b.qkv(block + ".attn.to_qkv.weight", c.decoder_heads, c.decoder_head_dim, width, block + ".attn", ".weight")
      .block_linear = true;
  b.qkv(block + ".attn.to_qkv.bias", c.decoder_heads, c.decoder_head_dim, 0, block + ".attn", ".bias").block_linear =
      true;
  const auto linear = [&](const std::string& name, Shape weight, const std::string& other) {
    b.add(name + ".weight", weight, Role::weight, other + ".weight").block_linear = true;
    b.add(name + ".bias", {weight[0]}, Role::bias, other + ".bias").block_linear = true;
  };
  linear(block + ".attn.to_out", {width, width}, block + ".attn.to_out.0");
  b.add(block + ".scale1", {width}, Role::layer_scale);
  b.norm(block + ".norm2", width, false);
  const std::string other = block + ".ff.net.0.proj";
  b.gated(block + ".ff.w1.weight", {2 * inner, width}, Role::weight, other + ".weight").block_linear = true;
  b.gated(block + ".ff.w1.bias", {2 * inner}, Role::bias, other + ".bias").block_linear = true;
  linear(block + ".ff.w2", {width, inner}, block + ".ff.net.2");
  b.add(block + ".scale2", {width}, Role::layer_scale);
}

ComponentPlan plan_video_vae(const VideoVaeConfig& c) {
  PlanBuilder b(Component::video_vae, DType::f32);
  const std::int64_t width = c.decoder_width();
  b.linear("post_quant_conv", {c.latent_channels, c.latent_channels, 1, 1, 1}, true);
  b.linear("decoder.x_embedder", {width, c.latent_channels}, true, "decoder.proj_in");
  b.add("decoder.register_tokens", {1, c.registers, width}, Role::embedding);
  for (std::int64_t i = 0; i < c.decoder_layers; ++i)
    add_decoder_block(b, c, fmt::format("decoder.transformer_blocks.{}", i));
  b.norm("decoder.norm_out", width, true);
  b.linear("decoder.proj_out", {c.out_channels * c.ratio_t() * c.ratio_s() * c.ratio_s(), width}, true);
  // The encoder last: renders without pictures do not need it.
  add_encoder(b, c);
  return b.take();
}

}  // namespace h3
