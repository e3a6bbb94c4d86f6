// Attention of one key head at a time: keys and values are packed into panels once; each task takes some query rows of
// one head through logits, softmax and the sum over values. A query row's logits are all in memory at once, so its
// softmax is two plain passes and depends on no other row.
#include <algorithm>
#include <limits>

#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/gemm.h"
#include "compute/cpu/lanes.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Query rows a task takes: few for long rows of logits, so that these stay in the cache.
std::int64_t task_queries(std::int64_t keys) {
  constexpr std::int64_t kLogits = 65536;
  return std::clamp<std::int64_t>(kLogits / std::max<std::int64_t>(keys, 1) / 6 * 6, 6, 48);
}

// One key head, packed: keys [keys / 16][d][16], values [d / 16][keys][16].
struct PackedHead {
  float* keys;
  float* values;
};

template <typename T>
void pack_keys(const Tensor& key, std::int64_t head, std::int64_t first, float* panels) {
  const std::int64_t d = key.size(2), count = std::min(kPanel, key.size(0) - first);
  const T* rows = key.as<T>() + first * key.stride(0) + head * key.stride(1);
  pack_panel(rows, key.stride(0), count, d, panels + first * d);
}

template <typename T>
void pack_values(const Tensor& value, std::int64_t head, std::int64_t row, float* panels) {
  const std::int64_t d = value.size(2), keys = value.size(0);
  const T* from = value.as<T>() + row * value.stride(0) + head * value.stride(1);
  for (std::int64_t c = 0; c < round_up(d, kPanel); ++c)
    panels[(c / kPanel * keys + row) * kPanel + c % kPanel] = c < d ? to_f32(from[c]) : 0.0f;
}

// Turns `n` logits into exponentials of their distance to the maximum, in place, and returns their sum. The row has
// room for whole vectors; lanes beyond n become 0.
float softmax_row(float* row, std::int64_t n, float scale) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  F8 largest = splat(kLowest);
  for (std::int64_t i = 0; i < n; i += 8) {
    F8 v = load8(row + i) * scale;
    if (n - i < 8)
      for (std::int64_t lane = n - i; lane < 8; ++lane) v[lane] = kLowest;
    store8(row + i, v);
    largest = v > largest ? v : largest;
  }
  float top = largest[0];
  for (int lane = 1; lane < 8; ++lane) top = std::max(top, largest[lane]);
  F8 sum = splat(0.0f);
  for (std::int64_t i = 0; i < n; i += 8) {
    const F8 e = exp8(load8(row + i) - top);
    store8(row + i, e);
    sum += e;
  }
  return sum_lanes(sum);
}

struct Task {
  const Tensor& query;
  const Tensor& o;
  const Operators::Attention& spec;
  PackedHead packed;
  std::int64_t keys;

  // How many keys query row i sees.
  std::int64_t visible(std::int64_t i) const {
    return spec.causal ? std::clamp<std::int64_t>(i + spec.first_query_row + 1, 0, keys) : keys;
  }

  template <typename T>
  void run(std::int64_t head, std::int64_t first, std::int64_t count) const {
    const std::int64_t d = query.size(2), wide = round_up(d, kPanel), stride = round_up(keys, kPanel);
    float* rows = scratch(0, count * d);
    float* logits = scratch(1, count * stride);
    float* sums = scratch(2, count * wide);
    for (std::int64_t i = 0; i < count; ++i)
      widen(query.as<T>() + (first + i) * query.stride(0) + head * query.stride(1), d, rows + i * d);
    const std::int64_t reach = visible(first + count - 1);
    for (std::int64_t j = 0; j < reach; j += kPanel)
      multiply_panel(rows, d, count, packed.keys + j * d, d, logits + j, stride);
    float totals[48];
    for (std::int64_t i = 0; i < count; ++i)
      totals[i] = softmax_row(logits + i * stride, visible(first + i), spec.scale);
    // Under a causal mask each row has a number of keys of its own, and takes the product alone.
    const std::int64_t together = spec.causal ? 1 : count;
    for (std::int64_t i = 0; i < count; i += together)
      for (std::int64_t c = 0; c < wide; c += kPanel)
        multiply_panel(logits + i * stride, stride, together, packed.values + c * keys, visible(first + i),
                       sums + i * wide + c, wide);
    for (std::int64_t i = 0; i < count; ++i) {
      float* out = sums + i * wide;
      for (std::int64_t c = 0; c < d; ++c) out[c] /= totals[i];
      narrow(out, d, o.as<T>() + (first + i) * o.stride(0) + head * o.stride(1));
    }
  }
};

}  // namespace

// One sequence.
static void attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o,
                   const Operators::Attention& spec) {
  for (const Tensor* t : {&query, &key, &value, &o}) {
    CHECK_EQ(t->rank(), 3);
    check_rows(*t);
    CHECK_EQ(t->size(2), query.size(2));
    CHECK_EQ(name_of(t->dtype), name_of(query.dtype));
  }
  H3_CHECK(key.shape == value.shape, key.shape.text() + " against " + value.shape.text());
  H3_CHECK(query.shape == o.shape, query.shape.text() + " against " + o.shape.text());
  if (query.elements() == 0) return;
  const std::int64_t queries = query.size(0), keys = key.size(0), d = query.size(2);
  CHECK_GE(keys, 1);
  CHECK_GE(key.size(1), 1);
  CHECK_EQ(query.size(1) % key.size(1), 0);
  if (spec.causal) CHECK_GE(spec.first_query_row, 0);
  const std::int64_t group = query.size(1) / key.size(1), step = task_queries(keys);
  const PackedHead packed{scratch(6, round_up(keys, kPanel) * d), scratch(7, keys * round_up(d, kPanel))};
  const Task task{query, o, spec, packed, keys};
  with_float_type(query.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel if (queries * keys * d > kParallelWork)
    for (std::int64_t head = 0; head < key.size(1); ++head) {
#pragma omp for schedule(static)
      for (std::int64_t j = 0; j < keys; j += kPanel) {
        pack_keys<T>(key, head, j, packed.keys);
        for (std::int64_t r = j; r < std::min(j + kPanel, keys); ++r) pack_values<T>(value, head, r, packed.values);
      }
#pragma omp for schedule(dynamic) collapse(2)
      for (std::int64_t h = 0; h < group; ++h)
        for (std::int64_t i = 0; i < queries; i += step) task.run<T>(head * group + h, i, std::min(step, queries - i));
    }
  });
}

void CpuOperators::attention(Queue& q, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o,
                             const Attention& spec) {
  H3_CHECK(spec.sequences == 1 || !spec.causal, "several sequences have no causal mask");
  for (std::int64_t s = 0; s < spec.sequences; ++s) {
    const auto part = [&](const Tensor& t) {
      CHECK_EQ(t.size(0) % spec.sequences, 0);
      return t.rows(s * (t.size(0) / spec.sequences), (s + 1) * (t.size(0) / spec.sequences));
    };
    attend(part(query), part(key), part(value), part(o), spec);
  }
  if (spec.sanitize) sanitize(q, o);
}

}  // namespace h3
