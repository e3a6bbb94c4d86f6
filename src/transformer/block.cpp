#include "transformer/block.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace h3 {

// Equal chunks of at most 40,960 rows: beyond that matrix products gain nothing, while the widest buffer (at the
// released model 115 KB a row) would pass that of attention.
static std::int64_t automatic_chunk(std::int64_t rows) {
  constexpr std::int64_t kMost = 40960, kUnit = 256;
  const std::int64_t pieces = (rows + kMost - 1) / kMost;
  return pieces <= 1 ? rows : (rows / pieces / kUnit + 1) * kUnit;
}

BlockWorkspace take_block_workspace(Arena& arena, const TransformerConfig& config, const ShardPlan& plan, int rank,
                                    ExchangePattern pattern, std::int64_t row_chunk, DType dtype) {
  const std::int64_t total = plan.rows.back().end, rows = plan.rows[static_cast<std::size_t>(rank)].size();
  const std::int64_t heads = plan.heads[static_cast<std::size_t>(rank)].size();
  const bool alone = plan.rows.size() == 1;
  const bool gathered = !alone && pattern == ExchangePattern::all_gather;
  BlockWorkspace w;
  // A gathered range is another rank's, so chunks are bounded by all rows, not by this rank's.
  const std::int64_t longest = gathered ? total : rows;
  w.chunk = std::max<std::int64_t>(1, std::min(row_chunk > 0 ? row_chunk : automatic_chunk(longest), longest));
  const std::size_t start = arena.mark();
  w.attended_rows = arena.take({rows, config.inner()}, dtype);
  w.projected = arena.take({w.chunk, config.hidden}, dtype);
  w.attended_heads = alone ? w.attended_rows : arena.take({total, heads * config.head_dim}, dtype);
  w.qkv_heads = arena.take({total, heads * 3 * config.head_dim}, dtype);
  w.hidden = arena.take({gathered ? total : w.chunk, config.hidden}, dtype);
  if (!alone && !gathered) w.qkv_rows = arena.take({rows, 3 * config.inner()}, dtype);
  if (!alone) w.staging = arena.take({rows * (gathered ? 1 : 3) * config.inner()}, dtype);
  arena.rewind(start);
  w.mlp_hidden = arena.take({w.chunk, config.hidden}, dtype);
  w.mlp_up = arena.take({w.chunk, 2 * config.ffn}, dtype);
  w.mlp_gated = arena.take({w.chunk, config.ffn}, dtype);
  return w;
}

WeightSet block_weights(const WeightSet& weights, std::int64_t layer, const TransformerConfig& config, Range heads,
                        ExchangePattern pattern) {
  const WeightSet all = below(weights, "blocks." + std::to_string(layer) + ".");
  WeightSet mine;
  for (const auto& [name, tensor] : all.tensors()) {
    if (name.starts_with("adaln_proj.")) continue;
    const bool own_heads = name == "attn.qkv_proj.weight" && pattern == ExchangePattern::all_gather;
    const std::int64_t unit = 3 * config.head_dim;
    mine.add(name, own_heads ? tensor.rows(heads.begin * unit, heads.end * unit) : tensor);
  }
  return mine;
}

QkvViews qkv_views(const Tensor& fused, std::int64_t head_dim) {
  const Tensor heads = fused.split(1, fused.size(1) / (3 * head_dim));
  return {heads.slice(2, 0, head_dim), heads.slice(2, head_dim, 2 * head_dim),
          heads.slice(2, 2 * head_dim, 3 * head_dim)};
}

namespace {

// Calls f(begin, end) over chunks of at most `chunk` rows.
template <typename F>
void for_chunks(Range range, std::int64_t chunk, F&& f) {
  for (std::int64_t at = range.begin; at < range.end; at += chunk) f(at, std::min(range.end, at + chunk));
}

// q/k norm and rotation of the rows [begin, end) of the sequence, in place in `fused`, which holds just those rows.
void normalize_and_rotate(Queue& q, const BlockContext& c, const WeightSet& w, const Tensor& fused,
                          std::int64_t begin) {
  Operators& ops = c.machine.operators();
  const QkvViews views = qkv_views(fused, c.config.head_dim);
  Operators::HeadNormRope spec;
  spec.eps = c.config.qk_norm_eps;
  spec.cos = c.cos.rows(begin, begin + fused.size(0));
  spec.sin = c.sin.rows(begin, begin + fused.size(0));
  spec.weight = w.at("attn.q_norm.weight");
  ops.head_norm_rope(q, views.q, spec);
  spec.weight = w.at("attn.k_norm.weight");
  ops.head_norm_rope(q, views.k, spec);
}

// Modulated input -> q, k, v of this rank's heads for all rows, in workspace.qkv_heads.
void project_qkv(Queue& q, const BlockContext& c, const WeightSet& w, const ModulationTables::Block& mod,
                 const Tensor& x) {
  Operators& ops = c.machine.operators();
  const BlockWorkspace& ws = c.workspace;
  const Range own = c.exchange.rows();
  LinearWeights qkv = w.linear("attn.qkv_proj");
  qkv.full_outputs = 3 * c.config.inner();
  const auto modulate = [&](std::int64_t begin, std::int64_t end, const Tensor& y) {
    ops.norm_modulate(q, x.rows(begin, end), w.at("norm1.weight"), c.config.norm_eps, mod.scale_msa, mod.shift_msa,
                      c.modulation_index.rows(begin, end), y);
  };
  const auto project = [&](const Tensor& hidden, const Tensor& fused, std::int64_t first_row) {
    if (fused.elements() == 0) return;
    ops.linear(q, hidden, qkv, fused);
    normalize_and_rotate(q, c, w, fused, first_row);
  };

  const bool alone = c.exchange.alone();
  if (!alone && c.pattern == ExchangePattern::all_gather) {
    if (own.size() > 0) modulate(0, own.size(), ws.hidden.rows(own.begin, own.end));
    c.exchange.gather_rows(q, ws.hidden, [&](Range arrived) {
      for_chunks(arrived, ws.chunk, [&](std::int64_t begin, std::int64_t end) {
        project(ws.hidden.rows(begin, end), ws.qkv_heads.rows(begin, end), begin);
      });
    });
    return;
  }
  const Tensor& fused = alone ? ws.qkv_heads : ws.qkv_rows;
  const auto project_rows = [&](Range rows) {
    for_chunks(rows, ws.chunk, [&](std::int64_t begin, std::int64_t end) {
      const Tensor hidden = ws.hidden.rows(0, end - begin);
      modulate(begin, end, hidden);
      project(hidden, fused.rows(begin, end), own.begin + begin);
    });
  };
  if (alone) return project_rows({0, own.size()});
  c.exchange.rows_to_heads(q, project_rows, fused, 3 * c.config.head_dim, ws.staging, ws.qkv_heads);
}

void attend(Queue& q, const BlockContext& c) {
  const BlockWorkspace& ws = c.workspace;
  const std::int64_t d = c.config.head_dim;
  const auto compute = [&](Queue& queue, Range heads, Range rows, const Tensor& out) {
    const QkvViews views = qkv_views(ws.qkv_heads, d);
    const auto part = [&](const Tensor& t) { return t.slice(1, heads.begin, heads.end); };
    Operators::Attention spec;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(d));
    c.machine.operators().attention(queue, part(views.q).rows(rows.begin, rows.end), part(views.k), part(views.v),
                                    out.split(1, heads.size()), spec);
  };
  c.exchange.heads_to_rows(q, compute, ws.attended_heads, d, ws.staging, ws.attended_rows);
}

}  // namespace

void run_block(Queue& q, const BlockContext& c, const WeightSet& w, const ModulationTables::Block& mod,
               const Tensor& x) {
  Operators& ops = c.machine.operators();
  const BlockWorkspace& ws = c.workspace;
  const Range own{0, x.size(0)};
  project_qkv(q, c, w, mod, x);
  attend(q, c);
  for_chunks(own, ws.chunk, [&](std::int64_t begin, std::int64_t end) {
    const Tensor projected = ws.projected.rows(0, end - begin);
    ops.linear(q, ws.attended_rows.rows(begin, end), w.linear("attn.out_proj"), projected);
    ops.gated_add(q, x.rows(begin, end), mod.gate_msa, c.modulation_index.rows(begin, end), projected);
  });
  for_chunks(own, ws.chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    const Tensor index = c.modulation_index.rows(begin, end), rows = x.rows(begin, end);
    const Tensor hidden = ws.mlp_hidden.rows(0, n), up = ws.mlp_up.rows(0, n), gated = ws.mlp_gated.rows(0, n);
    ops.norm_modulate(q, rows, w.at("norm2.weight"), c.config.norm_eps, mod.scale_mlp, mod.shift_mlp, index, hidden);
    ops.linear(q, hidden, w.linear("mlp.fc1"), up);
    ops.swiglu(q, up, gated);
    // The modulated input is no longer needed, so its buffer takes the result.
    ops.linear(q, gated, w.linear("mlp.fc2"), hidden);
    ops.gated_add(q, rows, mod.gate_mlp, index, hidden);
  });
}

}  // namespace h3
