#include <algorithm>
#include <cmath>

#include "random_tensors.h"

namespace h3::test {
namespace {

using AttentionTest = CpuOperatorTest;
using HeadNormRopeTest = CpuOperatorTest;

// A [rows, heads, d] view inside rows of another width, as in a fused qkv buffer.
OwnedTensor buffer_of(std::int64_t rows, std::int64_t heads, std::int64_t d, DType dtype, unsigned seed) {
  return random_tensor({rows, 3 * heads * d}, dtype, seed, 1.0, 7);
}
Tensor part(const OwnedTensor& buffer, int which, std::int64_t heads) {
  const std::int64_t width = buffer->size(1) / 3;
  return buffer->slice(1, which * width, (which + 1) * width).split(1, heads);
}

std::vector<double> naive_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Operators::Attention& spec) {
  const std::vector<double> a = doubles_of(query), b = doubles_of(key), c = doubles_of(value);
  const std::int64_t heads = query.size(1), d = query.size(2), key_heads = key.size(1), group = heads / key_heads;
  std::vector<double> y(a.size(), 0.0);
  for (std::int64_t i = 0; i < query.size(0); ++i)
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t keys = spec.causal ? std::min(key.size(0), i + spec.first_query_row + 1) : key.size(0);
      const auto at = [&](std::int64_t row, std::int64_t n, std::int64_t head) {
        return static_cast<std::size_t>((row * n + head) * d);
      };
      std::vector<double> p;
      for (std::int64_t j = 0; j < keys; ++j) {
        double dot = 0;
        for (std::size_t x = 0; x < static_cast<std::size_t>(d); ++x)
          dot += a[at(i, heads, h) + x] * b[at(j, key_heads, h / group) + x];
        p.push_back(dot * static_cast<double>(spec.scale));
      }
      const double top = *std::max_element(p.begin(), p.end());
      double sum = 0;
      for (double& v : p) sum += v = std::exp(v - top);
      for (std::int64_t j = 0; j < keys; ++j)
        for (std::size_t x = 0; x < static_cast<std::size_t>(d); ++x)
          y[at(i, heads, h) + x] += p[static_cast<std::size_t>(j)] / sum * c[at(j, key_heads, h / group) + x];
    }
  return y;
}

TEST_F(AttentionTest, AgreesWithDoublePrecision) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t d : {16, 24, 72, 100, 256})
      for (const std::int64_t rows : {1, 13, 70}) {
        const OwnedTensor qkv = buffer_of(rows, 2, d, dtype, 1);
        const OwnedTensor o = poisoned_tensor({rows, 2 * d}, dtype, 3);
        const Operators::Attention spec{1.0f / std::sqrt(static_cast<float>(d)), false, 0};
        ops_.attention(q_, part(qkv, 0, 2), part(qkv, 1, 2), part(qkv, 2, 2), o->split(1, 2), spec);
        expect_near(o->split(1, 2), naive_attention(part(qkv, 0, 2), part(qkv, 1, 2), part(qkv, 2, 2), spec),
                    tolerance_of(dtype), 2e-6);
      }
}

TEST_F(AttentionTest, SharesKeyHeadsUnderACausalMask) {
  for (const DType dtype : kFloatTypes) {
    const OwnedTensor query = random_tensor({50, 6, 32}, dtype, 1), key = random_tensor({61, 2, 32}, dtype, 2);
    const OwnedTensor value = random_tensor({61, 2, 32}, dtype, 3), o = poisoned_tensor({50, 6, 32}, dtype);
    const Operators::Attention spec{0.3f, true, 11};
    ops_.attention(q_, query, key, value, o, spec);
    expect_near(o, naive_attention(query, key, value, spec), tolerance_of(dtype), 2e-6);
  }
}

TEST_F(AttentionTest, DoesNotDependOnTheSplitOfQueriesAndHeads) {
  for (const bool causal : {false, true}) {
    const std::int64_t rows = 230, heads = 4, d = 40;
    const OwnedTensor qkv = buffer_of(rows, heads, d, DType::bf16, 1);
    const Tensor query = part(qkv, 0, heads), key = part(qkv, 1, heads), value = part(qkv, 2, heads);
    const OwnedTensor whole = poisoned_tensor({rows, heads, d}, DType::bf16);
    const OwnedTensor parts = poisoned_tensor({rows, heads, d}, DType::bf16);
    ops_.attention(q_, query, key, value, whole, {0.2f, causal, 0});
    const std::vector<std::int64_t> cuts = {0, 1, 6, 50, 99, 230}, head_cuts = {0, 1, 4};
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      for (std::size_t j = 0; j + 1 < head_cuts.size(); ++j) {
        const auto cut = [&](const Tensor& t) { return t.slice(1, head_cuts[j], head_cuts[j + 1]); };
        ops_.attention(q_, cut(query.rows(cuts[i], cuts[i + 1])), cut(key), cut(value),
                       cut(parts->rows(cuts[i], cuts[i + 1])), {0.2f, causal, cuts[i]});
      }
    expect_same_bits(parts, whole);
  }
}

TEST_F(AttentionTest, SequencesAttendApart) {
  const std::int64_t rows = 17, count = 3;
  const OwnedTensor qkv = buffer_of(count * rows, 2, 24, DType::f16, 1);
  const OwnedTensor together = poisoned_tensor({count * rows, 2, 24}, DType::f16);
  const OwnedTensor apart = poisoned_tensor({count * rows, 2, 24}, DType::f16);
  const Tensor query = part(qkv, 0, 2), key = part(qkv, 1, 2), value = part(qkv, 2, 2);
  value.at(20).at(1).as<f16_t>()[3] = to_f16(NAN);
  Operators::Attention spec{0.2f};
  for (std::int64_t s = 0; s < count; ++s) {
    const auto one = [&](const Tensor& t) { return t.rows(s * rows, (s + 1) * rows); };
    ops_.attention(q_, one(query), one(key), one(value), one(apart), spec);
  }
  ops_.sanitize(q_, apart);
  spec.sequences = count;
  spec.sanitize = true;
  ops_.attention(q_, query, key, value, together, spec);
  expect_same_bits(together, apart);
  spec.sequences = 2;
  EXPECT_ANY_THROW(ops_.attention(q_, query, key, value, together, spec)) << "51 rows are no two equal parts";
  spec = {0.2f, true, 0, count};
  EXPECT_ANY_THROW(ops_.attention(q_, query, key, value, together, spec));
}

// A row of a causal attention knows nothing of later rows, not even NaN.
TEST_F(AttentionTest, CausalRowsDoNotSeeLaterRows) {
  const std::int64_t rows = 40, seen = 17;
  const OwnedTensor query = random_tensor({rows, 2, 16}, DType::f32, 1),
                    key = random_tensor({rows, 2, 16}, DType::f32, 2);
  const OwnedTensor value = random_tensor({rows, 2, 16}, DType::f32, 3);
  const OwnedTensor o = poisoned_tensor({rows, 2, 16}, DType::f32), prefix = poisoned_tensor({seen, 2, 16}, DType::f32);
  ops_.attention(q_, query->rows(0, seen), key->rows(0, seen), value->rows(0, seen), prefix, {0.25f, true, 0});
  for (std::int64_t i = seen * 32; i < rows * 32; ++i) value->as<float>()[i] = key->as<float>()[i] = NAN;
  ops_.attention(q_, query, key, value, o, {0.25f, true, 0});
  expect_same_bits(o->rows(0, seen), prefix);
}

TEST_F(AttentionTest, StandsLargeLogitsAndManyKeys) {
  const std::int64_t keys = 3001;
  const OwnedTensor query = random_tensor({7, 1, 16}, DType::f32, 1, 30.0);
  const OwnedTensor key = random_tensor({keys, 1, 16}, DType::f32, 2, 30.0);
  const OwnedTensor value = random_tensor({keys, 1, 16}, DType::f32, 3), o = poisoned_tensor({7, 1, 16}, DType::f32);
  ops_.attention(q_, query, key, value, o, {0.01f, false, 0});
  expect_near(o, naive_attention(query, key, value, {0.01f, false, 0}), 1e-5, 1e-4);
  ops_.attention(q_, query, key, value, o, {1.0f, false, 0});
  for (const float v : values_of(o)) EXPECT_TRUE(std::isfinite(v));
}

TEST_F(AttentionTest, AcceptsNoQueriesAndRejectsWrongShapes) {
  const OwnedTensor x = random_tensor({4, 3, 16}, DType::f32, 1), o = poisoned_tensor({4, 3, 16}, DType::f32);
  ops_.attention(q_, x->rows(0, 0), x, x, o->rows(0, 0), {1.0f, false, 0});
  EXPECT_ANY_THROW(ops_.attention(q_, x, x->slice(1, 0, 2), x->slice(1, 0, 2), o, {1.0f, false, 0}));
  EXPECT_ANY_THROW(ops_.attention(q_, x, x->rows(0, 3), x, o, {1.0f, false, 0}));
  EXPECT_ANY_THROW(ops_.attention(q_, x, x->rows(0, 0), x->rows(0, 0), o, {1.0f, false, 0}));
}

// Norm and rotation of one head in float with the rounding points written out.
std::vector<float> naive_head(std::vector<float> x, const std::vector<float>& weight, const std::vector<float>& cosine,
                              const std::vector<float>& sine, DType dtype, const Operators::HeadNormRope& spec) {
  const auto round = [&](float v) { return round_to(dtype, v); };
  if (spec.norm) {
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
    const auto inverse =
        static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(x.size()) + static_cast<double>(spec.eps)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      float v = x[i] * inverse;
      if (spec.rounding == NormRounding::before_weight) v = round(v);
      x[i] = round(weight.empty() ? v : v * weight[i]);
    }
  }
  const std::size_t p = cosine.size();
  const auto product = [&](float a, float b) { return spec.round_products ? round(a * b) : a * b; };
  for (std::size_t j = 0; j < p; ++j) {
    const float a = x[j], b = x[j + p];
    x[j] = round(product(a, cosine[j]) - product(b, sine[j]));
    x[j + p] = round(product(b, cosine[j]) + product(a, sine[j]));
  }
  return x;
}

TEST_F(HeadNormRopeTest, NormsAndRotatesWithItsRoundingPoints) {
  const std::int64_t rows = 5, heads = 3, d = 40, p = 15;
  for (const DType dtype : kFloatTypes)
    for (const bool round_products : {false, true})
      for (const bool norm : {false, true})
        for (const bool weighted : {false, true})
          for (const DType table : {DType::f32, dtype}) {
            const OwnedTensor buffer = random_tensor({rows, heads * d}, dtype, 1, 2.0, 9);
            const OwnedTensor weight = random_tensor({d}, dtype, 2);
            const OwnedTensor cosine = random_tensor({rows, p}, table, 3), sine = random_tensor({rows, p}, table, 4);
            const Tensor x = buffer->split(1, heads);
            const Operators::HeadNormRope spec{weighted ? weight.view() : Tensor(),
                                               1e-5f,
                                               norm,
                                               weighted ? NormRounding::before_weight : NormRounding::once,
                                               cosine,
                                               sine,
                                               round_products};
            std::vector<double> expected;
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t h = 0; h < heads; ++h)
                for (const float v :
                     naive_head(values_of(x.at(r).at(h)), weighted ? values_of(weight) : std::vector<float>(),
                                values_of(cosine->at(r)), values_of(sine->at(r)), dtype, spec))
                  expected.push_back(static_cast<double>(v));
            ops_.head_norm_rope(q_, x, spec);
            // The inverse root may differ in its last bit, which moves a few values to the neighbouring half.
            const double step = dtype == DType::f32 ? 1e-6 : 4 * tolerance_of(dtype);
            expect_near(x, expected, step, step);
          }
}

TEST_F(HeadNormRopeTest, NormAloneLeavesTheRest) {
  const OwnedTensor x = random_tensor({2, 2, 8}, DType::f32, 1), same = copy_of(x);
  ops_.head_norm_rope(q_, x, {{}, 1e-5f, false, NormRounding::once, {}, {}, false});
  expect_same_bits(x, same);
  ops_.head_norm_rope(q_, x, {{}, 0.0f, true, NormRounding::once, {}, {}, false});
  double sum = 0;
  for (const double v : doubles_of(x->at(1).at(1))) sum += v * v;
  EXPECT_NEAR(sum, 8.0, 1e-5);
}

}  // namespace
}  // namespace h3::test
