#include "text/text_layer.h"

#include <algorithm>
#include <cmath>

namespace h3 {
namespace {

// Query heads that share one key/value head.
std::int64_t group_size(const TextConfig& config) {
  return config.heads / config.kv_heads;
}

std::vector<Range> scaled(std::vector<Range> ranges, std::int64_t factor) {
  for (Range& r : ranges) r = {r.begin * factor, r.end * factor};
  return ranges;
}

// The ranges by rank of the communicator that the gathers of one layer use.
std::vector<Range> by_rank(const TextShards& shards, const std::vector<Range>& ranges) {
  return shards.sharding == TextSharding::rows ? std::vector<Range>{ranges[0]} : ranges;
}

template <typename F>
void for_chunks(std::int64_t rows, std::int64_t chunk, F&& f) {
  for (std::int64_t at = 0; at < rows; at += chunk) f(at, std::min(rows, at + chunk));
}

// The rows of `name` that a rank owns, chosen by the full layer's output count.
LinearWeights slice_of(const WeightSet& w, const char* name, std::int64_t full_outputs) {
  return {w.at(name), {}, full_outputs};
}

// The first rows x columns elements of a buffer.
Tensor leading(const Tensor& buffer, std::int64_t rows, std::int64_t columns) {
  return buffer.reshape({buffer.elements()}).slice(0, 0, rows * columns).reshape({rows, columns});
}

}  // namespace

TextWorkspace take_text_workspace(Arena& arena, const TextConfig& config, const TextShards& shards, int rank,
                                  std::int64_t row_chunk, DType dtype) {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t rows = shards.rows_of(rank), total = shards.total_rows, d = config.head_dim;
  const std::int64_t groups = shards.groups[r].size() * d, heads = groups * group_size(config);
  const std::int64_t all_heads = config.heads * d;
  const bool by_rows = shards.sharding == TextSharding::rows;
  TextWorkspace w;
  w.chunk = std::max<std::int64_t>(1, std::min(row_chunk, rows));
  w.cos = arena.take({rows, d / 2}, dtype);
  w.sin = arena.take({rows, d / 2}, dtype);
  w.hidden = arena.take({rows, config.hidden}, dtype);
  w.query = arena.take({rows, heads}, dtype);
  w.attended = arena.take({rows, heads}, dtype);
  w.key = arena.take({total, groups}, dtype);
  w.value = arena.take({total, groups}, dtype);
  w.own_key = by_rows ? arena.take({rows, groups}, dtype) : w.key;
  w.own_value = by_rows ? arena.take({rows, groups}, dtype) : w.value;
  w.gate_up = arena.take({w.chunk, 2 * shards.ffn[r].size()}, dtype);
  w.full = arena.take({w.chunk, std::max(all_heads, config.ffn)}, dtype);
  w.scratch = by_rows ? arena.take({total, std::max(groups, config.hidden)}, dtype)
                      : arena.take({w.chunk, std::max({all_heads, config.ffn, config.hidden})}, dtype);
  return w;
}

WeightSet text_layer_weights(const WeightSet& weights, std::int64_t layer, const TextShards& shards,
                             const TextConfig& config, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::string prefix = fmt::format("model.language_model.layers.{}.", layer);
  WeightSet mine;
  const auto add = [&](const std::string& name, const Range& rows) {
    const Tensor& full = weights.at(prefix + name);
    if (rows.size() > 0) mine.add(name, full.rows(rows.begin, rows.end));
  };
  const Range groups{shards.groups[r].begin * config.head_dim, shards.groups[r].end * config.head_dim};
  add("self_attn.q_proj.weight", {groups.begin * group_size(config), groups.end * group_size(config)});
  add("self_attn.k_proj.weight", groups);
  add("self_attn.v_proj.weight", groups);
  add("self_attn.o_proj.weight", shards.hidden[r]);
  add("mlp.gate_proj.weight", shards.ffn[r]);
  add("mlp.up_proj.weight", shards.ffn[r]);
  add("mlp.down_proj.weight", shards.hidden[r]);
  for (const char* name : {"input_layernorm.weight", "post_attention_layernorm.weight"}) add(name, {0, config.hidden});
  for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) add(name, {0, config.head_dim});
  return mine;
}

TextLayer::TextLayer(Machine& machine, Communicator& communicator, const TextConfig& config, const TextShards& shards,
                     const TextWorkspace& workspace)
    : operators_(machine.operators()),
      communicator_(communicator),
      config_(config),
      shards_(shards),
      ws_(workspace),
      rank_(static_cast<std::size_t>(communicator.rank())),
      solo_(machine),
      heads_(shards.sharding == TextSharding::rows ? solo_ : communicator, operators_,
             scaled(by_rank(shards, shards.groups), group_size(config) * config.head_dim)),
      hidden_(shards.sharding == TextSharding::rows ? solo_ : communicator, operators_, by_rank(shards, shards.hidden)),
      ffn_(shards.sharding == TextSharding::rows ? solo_ : communicator, operators_, by_rank(shards, shards.ffn)) {}

void TextLayer::run(Queue& q, const WeightSet& weights, const Tensor& x) const {
  project(q, weights, x);
  attend(q);
  add_attention(q, weights, x);
  add_mlp(q, weights, x);
}

// Steps 1 to 4: q, k, v of own rows and heads, normed and rotated; k and v of all rows.
void TextLayer::project(Queue& q, const WeightSet& w, const Tensor& x) const {
  const Range groups = shards_.groups[rank_];
  if (x.size(0) > 0 && groups.size() > 0) {
    operators_.rms_norm(q, x, w.at("input_layernorm.weight"), config_.norm_eps, NormRounding::before_weight,
                        ws_.hidden);
    const std::int64_t queries = config_.heads * config_.head_dim, keys = config_.kv_heads * config_.head_dim;
    operators_.linear(q, ws_.hidden, slice_of(w, "self_attn.q_proj.weight", queries), ws_.query);
    operators_.linear(q, ws_.hidden, slice_of(w, "self_attn.k_proj.weight", keys), ws_.own_key);
    operators_.linear(q, ws_.hidden, slice_of(w, "self_attn.v_proj.weight", keys), ws_.own_value);
    norm_and_rotate(q, w.at("self_attn.q_norm.weight"), ws_.query, groups.size() * group_size(config_));
    norm_and_rotate(q, w.at("self_attn.k_norm.weight"), ws_.own_key, groups.size());
  }
  if (shards_.sharding != TextSharding::rows) return;
  gather_row_tiles(q, operators_, communicator_, shards_.rows, ws_.own_key, ws_.scratch, ws_.key);
  gather_row_tiles(q, operators_, communicator_, shards_.rows, ws_.own_value, ws_.scratch, ws_.value);
}

void TextLayer::norm_and_rotate(Queue& q, const Tensor& weight, const Tensor& rows, std::int64_t heads) const {
  Operators::HeadNormRope spec;
  spec.weight = weight;
  spec.eps = config_.norm_eps;
  spec.rounding = NormRounding::before_weight;
  spec.cos = ws_.cos;
  spec.sin = ws_.sin;
  spec.round_products = true;
  operators_.head_norm_rope(q, rows.split(1, heads), spec);
}

// Step 5, a tile of own rows at a time: each sees every row up to itself.
void TextLayer::attend(Queue& q) const {
  const std::int64_t groups = shards_.groups[rank_].size();
  if (groups == 0) return;
  const std::int64_t heads = groups * group_size(config_);
  const Tensor query = ws_.query.split(1, heads), attended = ws_.attended.split(1, heads);
  Operators::Attention spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  spec.causal = true;
  std::int64_t row = 0;
  for (const Range& tile : shards_.rows[rank_]) {
    spec.first_query_row = tile.begin;
    const std::int64_t end = row + tile.size();
    operators_.attention(q, query.rows(row, end), ws_.key.split(1, groups), ws_.value.split(1, groups),
                         attended.rows(row, end), spec);
    row = end;
  }
}

// Step 6.
void TextLayer::add_attention(Queue& q, const WeightSet& w, const Tensor& x) const {
  for_chunks(x.size(0), ws_.chunk, [&](std::int64_t begin, std::int64_t end) {
    const Tensor heads = leading(ws_.full, end - begin, heads_.width());
    heads_.gather(q, ws_.attended.rows(begin, end), heads, ws_.scratch);
    const Tensor out = ws_.hidden.rows(begin, end);
    if (const Tensor part = hidden_.part(out, ws_.scratch); part.elements() > 0) {
      operators_.linear(q, heads, slice_of(w, "self_attn.o_proj.weight", config_.hidden), part);
    }
    hidden_.gather(q, out, ws_.scratch);
    operators_.add(q, x.rows(begin, end), out);
  });
}

// Step 7.
void TextLayer::add_mlp(Queue& q, const WeightSet& w, const Tensor& x) const {
  const std::int64_t features = ffn_.own().size();
  for_chunks(x.size(0), ws_.chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    const Tensor hidden = ws_.hidden.rows(begin, end);
    const Tensor gated = leading(ws_.full, rows, config_.ffn);
    if (features > 0) {
      const Tensor up = ws_.gate_up.rows(0, rows);
      operators_.rms_norm(q, x.rows(begin, end), w.at("post_attention_layernorm.weight"), config_.norm_eps,
                          NormRounding::before_weight, hidden);
      operators_.linear(q, hidden, slice_of(w, "mlp.gate_proj.weight", config_.ffn), up.slice(1, 0, features));
      operators_.linear(q, hidden, slice_of(w, "mlp.up_proj.weight", config_.ffn), up.slice(1, features, 2 * features));
      operators_.swiglu(q, up, ffn_.part(gated, ws_.scratch));
    }
    ffn_.gather(q, gated, ws_.scratch);
    if (const Tensor part = hidden_.part(hidden, ws_.scratch); part.elements() > 0) {
      operators_.linear(q, gated, slice_of(w, "mlp.down_proj.weight", config_.hidden), part);
    }
    hidden_.gather(q, hidden, ws_.scratch);
    operators_.add(q, x.rows(begin, end), hidden);
  });
}

}  // namespace h3
