#include "transformer/refiner.h"

#include <cmath>

#include "transformer/block.h"
#include "weights/residency.h"

namespace h3 {

namespace {

struct RefinerBuffers {
  Tensor normed, fused, attended, up, gated, out;
};

void run_refiner_block(Queue& q, Operators& ops, const TransformerConfig& config, const WeightSet& w,
                       const RefinerBuffers& b, const Tensor& x) {
  ops.rms_norm(q, x, w.at("norm1.weight"), config.norm_eps, NormRounding::once, b.normed);
  ops.linear(q, b.normed, w.linear("attn.qkv_proj"), b.fused);
  const QkvViews views = qkv_views(b.fused, config.head_dim);
  Operators::HeadNormRope norm;
  norm.eps = config.qk_norm_eps;
  norm.weight = w.at("attn.q_norm.weight");
  ops.head_norm_rope(q, views.q, norm);
  norm.weight = w.at("attn.k_norm.weight");
  ops.head_norm_rope(q, views.k, norm);
  Operators::Attention attention;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  ops.attention(q, views.q, views.k, views.v, b.attended.split(1, config.heads), attention);
  ops.linear(q, b.attended, w.linear("attn.out_proj"), b.out);
  ops.add(q, x, b.out);
  ops.rms_norm(q, x, w.at("norm2.weight"), config.norm_eps, NormRounding::once, b.normed);
  ops.linear(q, b.normed, w.linear("mlp.fc1"), b.up);
  ops.swiglu(q, b.up, b.gated);
  ops.linear(q, b.gated, w.linear("mlp.fc2"), b.out);
  ops.add(q, x, b.out);
}

}  // namespace

void refine_text(Machine& machine, Queue& q, const TransformerConfig& config, const WeightSet& weights,
                 const Tensor& states, const Tensor& refined, const Observer& observer) {
  Operators& ops = machine.operators();
  const auto seen = [&](const std::string& name, const Tensor& t) {
    if (observer) observer(name, t);
  };
  std::vector<WeightSet> groups;
  for (std::int64_t i = 0; i < config.refiner_layers; ++i)
    groups.push_back(below(weights, "token_refiner.blocks." + std::to_string(i) + "."));
  WeightSet ends;
  for (const char* name : {"condition_proj.weight", "condition_proj.bias", "token_refiner.final_norm.weight"})
    ends.add(name, weights.at(name));
  groups.push_back(std::move(ends));
  WeightGroups resident(machine, q, std::move(groups), Residency::resident);

  const std::int64_t rows = states.size(0);
  const DType dtype = refined.dtype;
  const std::int64_t widths = 3 * config.hidden + 4 * config.inner() + 3 * config.ffn;
  Arena arena(machine, static_cast<std::size_t>(rows * widths) * size_of(dtype) + 8192);
  const auto take = [&](std::int64_t width) { return arena.take({rows, width}, dtype); };
  const RefinerBuffers buffers{take(config.hidden),  take(3 * config.inner()), take(config.inner()),
                               take(2 * config.ffn), take(config.ffn),         take(config.hidden)};
  const Tensor x = take(config.hidden);
  const WeightSet& last = resident.use(q, static_cast<std::size_t>(config.refiner_layers));
  ops.linear(q, states, last.linear("condition_proj"), x);
  seen("text_projected", x);
  for (std::int64_t i = 0; i < config.refiner_layers; ++i) {
    run_refiner_block(q, ops, config, resident.use(q, static_cast<std::size_t>(i)), buffers, x);
    seen("refiner" + std::to_string(i), x);
  }
  ops.rms_norm(q, x, last.at("token_refiner.final_norm.weight"), config.final_norm_eps, NormRounding::once, refined);
  seen("text_refined", refined);
  q.wait();
}

}  // namespace h3
