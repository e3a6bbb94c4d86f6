#include "transformer/transformer.h"

#include <gtest/gtest.h>

#include "golden_clip.h"
#include "parallel/solo_communicator.h"
#include "weights/load.h"
#include "weights/model_folder.h"

namespace h3::test {
namespace {

LoadOptions in_bf16() {
  LoadOptions options;
  options.precision = Precision::bf16;
  return options;
}

struct Nano {
  ModelFolder model = open_model(nano_path());
  WeightSet f32 = load_component(model, Component::transformer, {});
  WeightSet bf16 = load_component(model, Component::transformer, in_bf16());
  const TransformerConfig& config() const { return model.config().transformer; }
};
const Nano& nano() {
  static const Nano n;
  return n;
}

struct Velocities {
  std::vector<float> video, audio;
};

// One forward of a recorded case on one rank.
Velocities run_case(const Goldens& g, const std::string& name, Precision precision, std::int64_t row_chunk,
                    const Observer& observer = {}) {
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  SoloCommunicator solo(*machine);
  const TransformerConfig& config = nano().config();
  const GoldenClip c = golden_clip(g, name, config);
  TransformerOptions options;
  options.precision = precision;
  options.row_chunk = row_chunk;
  const std::vector<double> one{1.0};
  const ShardPlan plan = make_shard_plan(c.clip.rows, config.heads, one, one);
  Transformer t(*machine, *q, solo, config, precision == Precision::f32 ? nano().f32 : nano().bf16, options, plan);
  t.begin(*q, c.clip, plan, c.text, c.conditions(), c.steps, observer);
  Velocities v;
  v.video.assign(static_cast<std::size_t>(c.target_video().elements()), NAN);
  v.audio.assign(static_cast<std::size_t>(c.target_audio().elements()), NAN);
  t.forward(*q, 0, c.target_video(), c.target_audio(), Tensor(v.video.data(), c.target_video().shape, DType::f32),
            Tensor(v.audio.data(), c.target_audio().shape, DType::f32), observer);
  return v;
}

// The stored rows of the targets: the last ones.
std::vector<float> tail(const Goldens& g, const std::string& name, std::size_t count) {
  const std::vector<float> all = values_of(g.at(name));
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

void expect_tail_close(const Goldens& g, const std::string& name, const std::vector<float>& actual) {
  const auto& tolerance = g.json().at("tensors").at(name);
  const Distance d = distance(actual, tail(g, name, actual.size()));
  EXPECT_LE(d.largest, tolerance.at("atol").get<double>()) << name;
  EXPECT_LE(d.relative_l2, tolerance.at("rtol_l2").get<double>()) << name;
}

// The stored rotary tables repeat their angles for the second half of the rotated channels.
void expect_half_close(const Goldens& g, const std::string& name, const Tensor& actual) {
  const Tensor stored = g.at(name);
  const std::int64_t half = actual.size(1);
  const auto& tolerance = g.json().at("tensors").at(name);
  for (const std::int64_t begin : {std::int64_t{0}, half}) {
    const Distance d = distance(values_of(actual), values_of(stored.slice(1, begin, begin + half)));
    EXPECT_LE(d.largest, tolerance.at("atol").get<double>()) << name;
    EXPECT_LE(d.relative_l2, tolerance.at("rtol_l2").get<double>()) << name;
  }
}

TEST(Transformer, EveryTensorOfATextForward) {
  const Goldens g("transformer");
  std::vector<std::string> seen;
  const Velocities v = run_case(g, "t2va", Precision::f32, 0, [&](const std::string& name, const Tensor& value) {
    if (!g.has("t2va." + name)) return;
    g.expect_close("t2va." + name, value);
    seen.push_back(name);
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"text_projected", "refiner0", "refiner1", "text_refined", "block0",
                                            "block1", "block2", "block3", "block4", "block5"}));
  expect_tail_close(g, "t2va.video", v.video);
  expect_tail_close(g, "t2va.audio", v.audio);
}

TEST(Transformer, FinalModulation) {
  const Goldens g("transformer");
  std::vector<float> audio, video;
  run_case(g, "t2va", Precision::f32, 0, [&](const std::string& name, const Tensor& value) {
    if (name == "final_audio") audio = values_of(value);
    if (name == "final_video") video = values_of(value);
  });
  audio.insert(audio.end(), video.begin(), video.end());
  expect_tail_close(g, "t2va.final_modulated", audio);
}

TEST(Transformer, KeyframesAndReferences) {
  const Goldens g("transformer");
  for (const char* name : {"fl2va", "ref2va"}) {
    const Velocities v = run_case(g, name, Precision::f32, 0);
    // Condition rows stand before the targets in the stored outputs; the sampler ignores them.
    expect_tail_close(g, std::string(name) + ".video", v.video);
    expect_tail_close(g, std::string(name) + ".audio", v.audio);
  }
}

TEST(Transformer, Bfloat16WithinTheReferencesOwnDistance) {
  const Goldens g("transformer");
  for (const std::string name : {"t2va", "fl2va"}) {
    const Velocities v = run_case(g, name, Precision::bf16, 0);
    const auto check = [&](const std::string& what, const std::vector<float>& actual) {
      const std::vector<float> exact = tail(g, name + "." + what, actual.size());
      const double reference = distance(tail(g, name + ".bf16." + what, actual.size()), exact).relative_l2;
      EXPECT_LE(distance(actual, exact).relative_l2, 1.5 * reference) << name << " " << what;
    };
    check("video", v.video);
    check("audio", v.audio);
  }
}

TEST(Transformer, RowChunksChangeNoBit) {
  const Goldens g("transformer");
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Velocities whole = run_case(g, "fl2va", precision, 0);
    for (const std::int64_t chunk : {1, 7, 64, 1000}) {
      const Velocities v = run_case(g, "fl2va", precision, chunk);
      EXPECT_EQ(v.video, whole.video) << chunk;
      EXPECT_EQ(v.audio, whole.audio) << chunk;
    }
  }
}

TEST(Modulation, TimeEmbeddingAndEveryTable) {
  const Goldens g("transformer");
  const TransformerConfig& config = nano().config();
  const GoldenClip c = golden_clip(g, "t2va", config);
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  const ModulationTables tables(*machine, *q, config, nano().f32, c.steps, DType::f32);
  // Distinct timesteps of the case in ascending order: which class has each.
  const auto* times = g.at("t2va.in.timestep").as<float>();
  const auto index_of = [&](float t) { return t == times[0] ? 0 : 1; };
  const float t_video = c.steps[0][1], t_audio = c.steps[0][2];

  std::vector<float> two_times{times[0], times[1]};
  std::vector<float> sinusoid = time_sinusoid(two_times, config.freq_dim);
  g.expect_close("t2va.time_sinusoid", Tensor(sinusoid.data(), {2, config.freq_dim}, DType::f32));
  std::vector<float> embedding;
  for (const float t : two_times) {
    const auto row = values_of(tables.time_embedding().rows(t == t_video ? 1 : 2, t == t_video ? 2 : 3));
    embedding.insert(embedding.end(), row.begin(), row.end());
  }
  g.expect_close("t2va.time_embedding", Tensor(embedding.data(), {2, config.time_embed}, DType::f32));

  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string name = "t2va.modulation" + std::to_string(layer);
    const Tensor stored = g.at(name);  // [3 M, 6, hidden], row 3 ti + tag
    const auto& tolerance = g.json().at("tensors").at(name);
    const ModulationTables::Block b = tables.block(layer, 0);
    const std::vector<Tensor> parts{b.shift_msa, b.scale_msa, b.gate_msa, b.shift_mlp, b.scale_mlp, b.gate_mlp};
    const std::array<std::pair<std::int64_t, std::int64_t>, 3> classes{
        {{0, 3 * index_of(t_video) + 1}, {1, 3 * index_of(t_video)}, {2, 3 * index_of(t_audio) + 2}}};
    for (const auto& [mod_class, row] : classes)
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const Distance d =
            distance(values_of(parts[p].rows(mod_class, mod_class + 1)),
                     values_of(stored.at(row).rows(static_cast<std::int64_t>(p), static_cast<std::int64_t>(p) + 1)));
        EXPECT_LE(d.largest, tolerance.at("atol").get<double>()) << name;
        EXPECT_LE(d.relative_l2, tolerance.at("rtol_l2").get<double>()) << name;
      }
  }
}

// The inside of block 0 step by step with the operators that the block calls.
TEST(Block, InsideTheFirst) {
  const Goldens g("transformer");
  const TransformerConfig& config = nano().config();
  const GoldenClip c = golden_clip(g, "t2va", config);
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  Operators& ops = machine->operators();
  const ModulationTables tables(*machine, *q, config, nano().f32, c.steps, DType::f32);
  const ModulationTables::Block mod = tables.block(0, 0);
  const WeightSet w = below(nano().f32, "blocks.0.");
  const std::int64_t rows = c.clip.rows, h = config.hidden;
  Arena arena(*machine, std::size_t{16} << 20);
  const auto take = [&](std::int64_t width) { return arena.take({rows, width}, DType::f32); };

  const Tensor x = take(h);
  const std::int64_t audio_row = c.clip.text_rows, video_row = audio_row + c.audio.size(0);
  ops.copy_rows(*q, g.at("t2va.text_refined"), x.rows(0, audio_row));
  ops.copy_rows(*q, g.at("t2va.audio_projected"), x.rows(audio_row, video_row));
  ops.copy_rows(*q, g.at("t2va.video_projected"), x.rows(video_row, rows));
  const Tensor index(const_cast<std::int32_t*>(c.clip.classes.data()), {rows}, DType::i32);

  const Tensor normed = take(h), hidden = take(h), fused = take(3 * config.inner()), attended = take(config.inner());
  ops.rms_norm(*q, x, w.at("norm1.weight"), config.norm_eps, NormRounding::once, normed);
  g.expect_close("t2va.inside0.norm1", normed);
  ops.modulate(*q, normed, mod.scale_msa, mod.shift_msa, index, hidden);
  ops.linear(*q, hidden, w.linear("attn.qkv_proj"), fused);
  const QkvViews views = qkv_views(fused, config.head_dim);
  Operators::HeadNormRope spec;
  spec.eps = config.qk_norm_eps;
  spec.weight = w.at("attn.q_norm.weight");
  ops.head_norm_rope(*q, views.q, spec);
  g.expect_close("t2va.inside0.q_normed", views.q);
  spec.weight = w.at("attn.k_norm.weight");
  ops.head_norm_rope(*q, views.k, spec);
  spec.norm = false;
  spec.weight = {};
  spec.cos = Tensor(const_cast<float*>(c.clip.cos.data()), {rows, 3 * config.rope_freqs}, DType::f32);
  spec.sin = Tensor(const_cast<float*>(c.clip.sin.data()), {rows, 3 * config.rope_freqs}, DType::f32);
  expect_half_close(g, "t2va.rope_cos", spec.cos);
  expect_half_close(g, "t2va.rope_sin", spec.sin);
  ops.head_norm_rope(*q, views.q, spec);
  ops.head_norm_rope(*q, views.k, spec);
  Operators::Attention attention;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  ops.attention(*q, views.q, views.k, views.v, attended.split(1, config.heads), attention);
  ops.linear(*q, attended, w.linear("attn.out_proj"), hidden);
  g.expect_close("t2va.inside0.attention", hidden);
  ops.gated_add(*q, x, mod.gate_msa, index, hidden);
  ops.rms_norm(*q, x, w.at("norm2.weight"), config.norm_eps, NormRounding::once, normed);
  g.expect_close("t2va.inside0.norm2", normed);
  const Tensor up = take(2 * config.ffn), gated = take(config.ffn);
  ops.modulate(*q, normed, mod.scale_mlp, mod.shift_mlp, index, hidden);
  ops.linear(*q, hidden, w.linear("mlp.fc1"), up);
  ops.swiglu(*q, up, gated);
  ops.linear(*q, gated, w.linear("mlp.fc2"), hidden);
  g.expect_close("t2va.inside0.feed_forward", hidden);
  ops.gated_add(*q, x, mod.gate_mlp, index, hidden);
  g.expect_close("t2va.block0", x);
}

TEST(Projections, VideoAndAudioRows) {
  const Goldens g("transformer");
  const GoldenClip c = golden_clip(g, "t2va", nano().config());
  const auto machine = make_cpu_machine();
  const auto q = machine->make_queue();
  std::vector<float> video(static_cast<std::size_t>(c.video.size(0) * nano().config().hidden), NAN), audio = video;
  const Tensor v(video.data(), {c.video.size(0), nano().config().hidden}, DType::f32);
  const Tensor a(audio.data(), {c.audio.size(0), nano().config().hidden}, DType::f32);
  machine->operators().linear(*q, c.video, nano().f32.linear("video_patch_proj"), v);
  machine->operators().linear(*q, c.audio, nano().f32.linear("audio_patch_proj"), a);
  g.expect_close("t2va.video_projected", v);
  g.expect_close("t2va.audio_projected", a);
}

}  // namespace
}  // namespace h3::test
