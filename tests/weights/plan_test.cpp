// The tensor plans against the counts and sizes that the specification states for the released model.
#include "weights/tensor_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "weights/load.h"
#include "weights/name_ranges.h"

namespace h3 {
namespace {

const ModelConfig& released() {
  static const ModelConfig config = released_model_config();
  return config;
}

std::int64_t elements(const ComponentPlan& plan, const std::string& prefix, const std::string& part = "") {
  std::int64_t n = 0;
  for (const PlannedTensor& t : plan.tensors)
    if (t.name.starts_with(prefix) && t.name.find(part) != std::string::npos) n += t.shape.elements();
  return n;
}

std::size_t count(const ComponentPlan& plan, const std::string& prefix, Layout layout) {
  std::size_t n = 0;
  for (const PlannedTensor& t : plan.tensors)
    if (t.name.starts_with(prefix)) n += stored_parts(t, layout).size();
  return n;
}

// Every stored name once, every row of every canonical tensor covered by exactly one stored row.
void expect_sound(const ComponentPlan& plan) {
  for (Layout layout : {Layout::diffusers, Layout::original}) {
    std::set<std::string> names;
    for (const PlannedTensor& t : plan.tensors) {
      std::int64_t stored = 0;
      for (const StoredPart& part : stored_parts(t, layout)) {
        EXPECT_TRUE(names.insert(part.name).second) << part.name;
        stored += part.shape.elements();
      }
      if (stored > 0) {
        EXPECT_EQ(stored, t.shape.elements()) << t.name;
      }
    }
  }
}

TEST(Plan, ReleasedTransformer) {
  const ComponentPlan plan = plan_transformer(released().transformer);
  expect_sound(plan);
  // spec/dit.md 1.2, 2.1, 2.2
  EXPECT_EQ(plan.stored_count(Layout::original), 535u);
  EXPECT_EQ(plan.stored_count(Layout::diffusers), 638u);
  EXPECT_EQ(plan.stored_bytes(Layout::original), 66'280'430'144u);
  EXPECT_EQ(plan.stored_bytes(Layout::diffusers), 66'280'430'080u);
  EXPECT_EQ(elements(plan, "") - 16, 33'122'992'896);
  EXPECT_EQ(elements(plan, "blocks.7."), 645'571'840);
  EXPECT_EQ(elements(plan, "blocks.7.attn.qkv_proj."), 115'605'504);
  EXPECT_EQ(elements(plan, "blocks.7.attn.out_proj."), 38'535'168);
  EXPECT_EQ(elements(plan, "blocks.7.mlp.fc1."), 154'140'672);
  EXPECT_EQ(elements(plan, "blocks.7.mlp.fc2."), 77'070'336);
  EXPECT_EQ(elements(plan, "blocks.7.", ".norm"), 10'752);
  EXPECT_EQ(elements(plan, "blocks.7.attn.q_norm.") + elements(plan, "blocks.7.attn.k_norm."), 256);
  EXPECT_EQ(elements(plan, "blocks.7.adaln_proj."), 260'209'152);
  EXPECT_EQ(elements(plan, "token_refiner.blocks.1."), 385'362'688);
  EXPECT_EQ(elements(plan, "token_refiner.final_norm."), 5'376);
  EXPECT_EQ(elements(plan, "condition_proj."), 27'530'496);
  EXPECT_EQ(elements(plan, "video_patch_proj."), 521'472);
  EXPECT_EQ(elements(plan, "audio_patch_proj."), 177'408);
  EXPECT_EQ(elements(plan, "time_embedder."), 15'835'008);
  EXPECT_EQ(elements(plan, "final_layer.norm."), 5'376);
  EXPECT_EQ(elements(plan, "final_layer.adaln_proj."), 28'912'128);
  EXPECT_EQ(elements(plan, "final_layer.video_out."), 516'192);
  EXPECT_EQ(elements(plan, "final_layer.audio_out."), 172'064);
  std::int64_t f32 = 0;
  for (const PlannedTensor& t : plan.tensors)
    if (t.dtype == DType::f32 && t.role != Role::frequencies) f32 += t.shape.elements();
  EXPECT_EQ(f32, 17'222'144);
}

TEST(Plan, TransformerShapesAndNames) {
  const ComponentPlan plan = plan_transformer(released().transformer);
  std::map<std::string, const PlannedTensor*> by_name;
  std::map<std::string, Shape> diffusers;
  for (const PlannedTensor& t : plan.tensors) {
    by_name[t.name] = &t;
    for (const StoredPart& p : t.diffusers) diffusers.emplace(p.name, p.shape);
  }
  EXPECT_EQ(by_name.at("blocks.49.attn.qkv_proj.weight")->shape, (Shape{21504, 5376}));
  EXPECT_EQ(by_name.at("blocks.0.adaln_proj.linear.weight")->shape, (Shape{96768, 2688}));
  EXPECT_EQ(by_name.at("final_layer.adaln_proj.linear.bias")->shape, (Shape{10752}));
  EXPECT_EQ(by_name.at("time_embedder.proj_out.weight")->shape, (Shape{2688, 5376}));
  EXPECT_EQ(by_name.at("condition_proj.weight")->dtype, DType::bf16);
  EXPECT_EQ(by_name.at("final_layer.norm.weight")->dtype, DType::bf16);
  EXPECT_EQ(by_name.at("final_layer.video_out.bias")->dtype, DType::f32);
  EXPECT_EQ(diffusers.at("transformer_blocks.49.attn.to_v.weight"), (Shape{7168, 5376}));
  EXPECT_EQ(diffusers.at("transformer_blocks.0.ff.net.0.proj.weight"), (Shape{28672, 5376}));
  EXPECT_EQ(diffusers.at("token_refiner.refiner_blocks.1.attn.to_out.0.weight"), (Shape{5376, 7168}));
  EXPECT_EQ(diffusers.at("norm_out.linear.weight"), (Shape{10752, 2688}));
  EXPECT_EQ(diffusers.at("audio_proj_out.weight"), (Shape{32, 5376}));
  EXPECT_EQ(diffusers.count("rope.inv_freq"), 0u);
}

TEST(Plan, RopeFrequencies) {
  // spec/dit.md 4.3
  const std::uint32_t bits[] = {0x3f800000, 0x3f0ff59a, 0x3ea1e89b, 0x3e361887, 0x3dcccccd, 0x3d6655c2,
                                0x3d0186e3, 0x3c91ad39, 0x3c23d70a, 0x3bb8449c, 0x3b4f3e38, 0x3ae91528,
                                0x3a83126f, 0x3a136a16, 0x39a5cb60, 0x393a7753};
  const std::vector<float> inv = rope_frequencies(released().transformer);
  ASSERT_EQ(inv.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(inv[i]), bits[i]) << i;
}

TEST(Plan, ReleasedTextEncoder) {
  const TextConfig& c = released().text;
  const ComponentPlan plan = plan_text_encoder(c);
  expect_sound(plan);
  // spec/text.md 4 and 5.1
  EXPECT_EQ(elements(plan, "model.visual."), 595'266'800);
  EXPECT_EQ(count(plan, "model.visual.", Layout::diffusers), 351u);
  EXPECT_EQ(elements(plan, "model.language_model.layers.49."), 487'598'336);
  EXPECT_EQ(elements(plan, "model.language_model.layers."), 24'379'916'800);
  EXPECT_EQ(elements(plan, "model.language_model.embed_tokens."), 777'912'320);
  EXPECT_EQ(plan.stored_bytes(Layout::diffusers), 51'506'191'840u);
  // The whole released set: all 64 layers, the final norm and the head.
  TextConfig whole = c;
  whole.state = whole.layers;
  const ComponentPlan all = plan_text_encoder(whole);
  EXPECT_EQ(all.stored_count(Layout::diffusers) + 2, 1058u);
  EXPECT_EQ(all.stored_bytes(Layout::diffusers) + 2u * (5120u + 151936u * 5120u), 66'714'780'128u);
}

TEST(Plan, IgnorableNames) {
  const auto ignored = [](Component component, const char* name, Layout layout = Layout::diffusers) {
    return ignorable(released(), component, layout, name);
  };
  EXPECT_TRUE(ignored(Component::text_encoder, "lm_head.weight"));
  EXPECT_TRUE(ignored(Component::text_encoder, "model.language_model.norm.weight"));
  EXPECT_TRUE(ignored(Component::text_encoder, "model.language_model.layers.50.mlp.up_proj.weight"));
  EXPECT_TRUE(ignored(Component::text_encoder, "model.language_model.rotary_emb.inv_freq"));
  EXPECT_FALSE(ignored(Component::text_encoder, "model.language_model.layers.49.mlp.up_proj.bias"));
  EXPECT_FALSE(ignored(Component::text_encoder, "model.language_model.layers.x"));
  EXPECT_FALSE(ignored(Component::text_encoder, "model.language_model.layers."));
  EXPECT_FALSE(ignored(Component::text_encoder, "model.language_model.layers.99999999999999999999.x"));
  EXPECT_TRUE(ignored(Component::video_vae, "decoder.mask_token", Layout::original));
  EXPECT_FALSE(ignored(Component::video_vae, "decoder.mask_token", Layout::diffusers));
  EXPECT_FALSE(ignored(Component::transformer, "lm_head.weight"));
}

TEST(Plan, ReleasedVideoVae) {
  const ComponentPlan plan = plan_video_vae(released().video_vae);
  expect_sound(plan);
  // spec/vae.md 1 and 3.1
  EXPECT_EQ(plan.stored_count(Layout::diffusers), 703u);
  EXPECT_EQ(plan.stored_count(Layout::original) + 1, 560u);  // with decoder.mask_token
  EXPECT_EQ(plan.stored_bytes(Layout::diffusers), 10'415'475'936u);
  EXPECT_EQ(elements(plan, ""), 2'603'868'984);
  EXPECT_EQ(elements(plan, "encoder."), 180'335'536);
  EXPECT_EQ(elements(plan, "quant_conv."), 2'352);
  EXPECT_EQ(elements(plan, "post_quant_conv."), 600);
  EXPECT_EQ(elements(plan, "decoder."), 2'423'530'496);
  EXPECT_EQ(elements(plan, "decoder.transformer_blocks.35."), 67'143'680);
  EXPECT_EQ(count(plan, "decoder.transformer_blocks.35.", Layout::diffusers), 16u);
  EXPECT_EQ(count(plan, "decoder.transformer_blocks.35.", Layout::original), 12u);
  EXPECT_EQ(count(plan, "encoder.", Layout::diffusers), 116u);
  EXPECT_EQ(count(plan, "decoder.", Layout::diffusers), 583u);
  EXPECT_EQ(count(plan, "decoder.", Layout::original) + 1, 440u);
  const std::int64_t levels[] = {2'213'504, 7'998'720, 8'850'688, 31'988'224, 28'317'696, 99'627'008};
  for (int level = 0; level < 6; ++level)
    EXPECT_EQ(elements(plan, fmt::format("encoder.down.{}.", level)), levels[level]);
}

TEST(Plan, ReleasedAudioVae) {
  const ComponentPlan plan = plan_audio_vae(released().audio_vae);
  expect_sound(plan);
  // spec/vae.md 1 and 15
  EXPECT_EQ(plan.stored_count(Layout::diffusers), 1087u);
  EXPECT_EQ(plan.stored_count(Layout::original), 1087u);
  EXPECT_EQ(plan.stored_bytes(Layout::diffusers), 605'306'340u);
  EXPECT_EQ(elements(plan, "encoder."), 73'714'816);
  EXPECT_EQ(elements(plan, "pre_block."), 12'670'304);
  EXPECT_EQ(elements(plan, "mean_proj.") + elements(plan, "logs_proj."), 2'112);
  EXPECT_EQ(elements(plan, "dec_in_proj."), 67'584);
  EXPECT_EQ(elements(plan, "decoder."), 64'871'769);
  EXPECT_EQ(count(plan, "encoder.", Layout::original), 147u);
  EXPECT_EQ(count(plan, "pre_block.", Layout::original), 22u);
  EXPECT_EQ(count(plan, "decoder.", Layout::original), 912u);
  // Folded: one weight for each pair.
  const MemoryPlan memory = plan_memory(plan, {});
  EXPECT_EQ(memory.tensors.size(), 915u);
  std::int64_t folded = 0;
  for (const LoadedTensor& t : memory.tensors) folded += t.shape.elements();
  EXPECT_EQ(folded, 151'287'256);
}

TEST(Plan, AudioFilter) {
  const float expected[] = {0.00202896645f,  0.00938946394f, -0.02554346407f,
                            -0.05765737548f, 0.12857260908f, 0.44320980007f};
  const std::vector<float> f = audio_filter();
  ASSERT_EQ(f.size(), 12u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(f[i], expected[i], 1e-9);
    EXPECT_EQ(f[i], f[11 - i]);
  }
}

// Rows of a canonical tensor must be met once each, whatever stretch is asked for.
TEST(Plan, RowPiecesCoverAnyStretch) {
  PlanBuilder b(Component::transformer, DType::f32);
  const PlannedTensor qkv = b.qkv("x", 3, 2, 5, "p", ".weight");
  const PlannedTensor gated = b.gated("y", {10, 4}, Role::weight, "z");
  for (const PlannedTensor& t : {qkv, gated})
    for (std::int64_t begin = 0; begin <= t.rows(); ++begin)
      for (std::int64_t end = begin; end <= t.rows(); ++end) {
        std::set<std::int64_t> covered;
        for (const StoredPart& part : t.diffusers)
          for (const RowPiece& piece : row_pieces(t, part, begin, end))
            for (std::int64_t r = 0; r < piece.rows; ++r) {
              EXPECT_TRUE(covered.insert(piece.canonical + r).second);
              EXPECT_LT(piece.stored + r, part.shape[0]);
            }
        EXPECT_EQ(static_cast<std::int64_t>(covered.size()), end - begin);
        if (covered.empty()) continue;
        EXPECT_EQ(*covered.begin(), begin);
        EXPECT_EQ(*covered.rbegin(), end - 1);
      }
}

TEST(Plan, MemoryDtypes) {
  const auto dtypes = [](Component component, const LoadOptions& options) {
    std::map<std::string, DType> by_name;
    for (const LoadedTensor& t : plan_memory(plan_component(released(), component), options).tensors)
      by_name[t.name] = t.dtype;
    return by_name;
  };
  LoadOptions low;
  low.precision = Precision::bf16;
  low.vae_profile = VaeProfile::R;
  const auto transformer = dtypes(Component::transformer, low);
  EXPECT_EQ(transformer.at("blocks.0.attn.qkv_proj.weight"), DType::bf16);
  EXPECT_EQ(transformer.at("blocks.0.adaln_proj.linear.bias"), DType::bf16);
  for (const char* name : {"video_patch_proj.weight", "audio_patch_proj.bias", "time_embedder.proj_in.weight",
                           "final_layer.video_out.weight", "final_layer.audio_out.bias", "rope.inv_freq"})
    EXPECT_EQ(transformer.at(name), DType::f32) << name;
  const auto video = dtypes(Component::video_vae, low);
  const std::string block = "decoder.transformer_blocks.3.";
  for (const char* name :
       {"attn.to_qkv.weight", "attn.to_qkv.bias", "attn.to_out.weight", "ff.w1.bias", "ff.w2.weight"})
    EXPECT_EQ(video.at(block + name), DType::f16) << name;
  for (const char* name : {"norm1.weight", "scale2"}) EXPECT_EQ(video.at(block + name), DType::f32) << name;
  for (const char* name : {"decoder.x_embedder.weight", "decoder.proj_out.bias", "decoder.register_tokens",
                           "post_quant_conv.weight", "encoder.conv_in.weight"})
    EXPECT_EQ(video.at(name), DType::f32) << name;
  std::size_t halves = 0;
  for (const auto& [name, dtype] : video) halves += dtype == DType::f16 && name.ends_with(".weight");
  EXPECT_EQ(halves, 144u);  // spec/vae.md 8.2
  EXPECT_EQ(dtypes(Component::text_encoder, low).at("model.visual.pos_embed.weight"), DType::bf16);
  for (Component component :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae})
    for (const auto& [name, dtype] : dtypes(component, {})) EXPECT_EQ(dtype, DType::f32) << name;
}

TEST(Plan, NameRanges) {
  EXPECT_EQ(name_ranges({"a.0.b", "a.1.b", "a.3.b", "c"}), (std::vector<std::string>{"a.{0-1,3}.b", "c"}));
  EXPECT_EQ(name_ranges({"x.0.y.0", "x.0.y.1", "x.1.y.0", "x.1.y.1"}), (std::vector<std::string>{"x.{0-1}.y.{0-1}"}));
  // Not a rectangle: two lines, and nothing that was not there.
  EXPECT_EQ(name_ranges({"x.0.y.0", "x.0.y.1", "x.1.y.0"}), (std::vector<std::string>{"x.0.y.{0-1}", "x.1.y.0"}));
  EXPECT_EQ(name_ranges({"x.7"}), (std::vector<std::string>{"x.7"}));
}

}  // namespace
}  // namespace h3
