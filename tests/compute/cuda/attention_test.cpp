#include "twins.h"

namespace h3::test {
namespace {

struct Kind {
  DType dtype;
  std::int64_t d, query_heads, key_heads;
  bool causal;
};

const std::vector<Kind> kKinds = {
    {DType::bf16, 128, 8, 8, false}, {DType::f16, 64, 6, 6, false},  {DType::bf16, 128, 16, 2, true},
    {DType::bf16, 72, 4, 4, false},  {DType::bf16, 64, 4, 4, false}, {DType::f16, 128, 4, 4, false},
    {DType::bf16, 32, 8, 8, false},  {DType::f16, 32, 4, 4, false},  {DType::bf16, 32, 8, 4, true},
    {DType::f32, 32, 8, 8, false},   {DType::f32, 128, 3, 3, false}, {DType::f32, 64, 4, 2, true},
    {DType::f32, 256, 2, 2, true},   {DType::f32, 20, 2, 2, false},  {DType::bf16, 16, 4, 4, false}};

std::string name_of_kind(const Kind& k) {
  return fmt::format("{} d {} heads {}/{}{}", name_of(k.dtype), k.d, k.query_heads, k.key_heads,
                     k.causal ? " causal" : "");
}

class CudaAttention : public CudaTest {
 protected:
  // Query, key and value in one buffer as the transformer has them: per head q, k, v side by side where head counts
  // are equal, else heads of q, then of k, then of v.
  struct Operands {
    Twin query, key, value;
  };
  Operands operands(const Kind& k, std::int64_t rows) {
    if (k.query_heads == k.key_heads) {
      const Twin qkv = random({rows, k.query_heads * 3 * k.d}, k.dtype).split(1, k.query_heads);
      return {qkv.slice(2, 0, k.d), qkv.slice(2, k.d, 2 * k.d), qkv.slice(2, 2 * k.d, 3 * k.d)};
    }
    const std::int64_t heads = k.query_heads + 2 * k.key_heads;
    const Twin qkv = random({rows, heads * k.d}, k.dtype).split(1, heads);
    const std::int64_t q = k.query_heads, kv = k.key_heads;
    return {qkv.slice(1, 0, q), qkv.slice(1, q, q + kv), qkv.slice(1, q + kv, q + 2 * kv)};
  }
  static Operators::Attention spec(const Kind& k, std::int64_t first = 0) {
    return {1.0f / std::sqrt(static_cast<float>(k.d)), k.causal, first};
  }
  void run(const Kind& k, const Operands& x, const Twin& o, std::int64_t first = 0) {
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      ops.attention(q, at(x.query), at(x.key), at(x.value), at(o), spec(k, first));
    });
  }
  // Output [rows, heads * d] as [rows, heads, d].
  Twin output(const Kind& k, std::int64_t rows) {
    return poisoned({rows, k.query_heads * k.d}, k.dtype).split(1, k.query_heads);
  }
  // Slices of heads (whole groups) and of queries, byte by byte.
  void check_slices(const Kind& k, std::int64_t rows) {
    SCOPED_TRACE(fmt::format("{} rows {}", name_of_kind(k), rows));
    const Operands x = operands(k, rows);
    const Twin full = output(k, rows), cut = output(k, rows);
    run(k, x, full);
    const std::int64_t group = k.query_heads / k.key_heads;
    for (const auto& [h0, h1] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {0, k.key_heads}, {k.key_heads / 2, k.key_heads}})
      for (const auto& [r0, r1] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {0, rows}, {0, 1}, {rows - 1, rows}, {rows / 3, rows / 3 + 17}, {rows / 5, rows - 3}}) {
        const Twin o = cut.rows(r0, r1).slice(1, h0 * group, h1 * group);
        const Operands y{x.query.rows(r0, r1).slice(1, h0 * group, h1 * group), x.key.slice(1, h0, h1),
                         x.value.slice(1, h0, h1)};
        run(k, y, o, k.causal ? r0 : 0);
        EXPECT_TRUE(bytes_of(o) == bytes_of(full.rows(r0, r1).slice(1, h0 * group, h1 * group)))
            << "key heads [" << h0 << ", " << h1 << ") queries [" << r0 << ", " << r1 << ")";
      }
  }
};

TEST_F(CudaAttention, EqualsTheOracle) {
  for (const Kind& k : kKinds)
    for (const std::int64_t rows : {1, 77, 127, 128, 129, 333}) {
      SCOPED_TRACE(fmt::format("{} rows {}", name_of_kind(k), rows));
      const Operands x = operands(k, rows);
      const Twin o = output(k, rows);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.attention(q, at(x.query), at(x.key), at(x.value), at(o), spec(k));
      });
      // Fused kernels round the weights of the values to the operands' type.
      const double limit = k.dtype == DType::f32 ? 2e-6 : k.dtype == DType::bf16 ? 6e-3 : 8e-4;
      expect_close(o, limit, k.dtype == DType::f32 ? 4e-6 : 8 * unit(k.dtype));
    }
}

TEST_F(CudaAttention, QueriesAndKeysMayDiffer) {
  struct Lengths {
    std::int64_t queries, keys;
  };
  for (const Kind& k : {kKinds[0], kKinds[6], kKinds[10]})
    for (const Lengths& n : {Lengths{45, 200}, Lengths{1000, 3}, Lengths{129, 1000}}) {
      SCOPED_TRACE(fmt::format("{} queries {} keys {}", name_of_kind(k), n.queries, n.keys));
      const Operands x = operands(k, n.queries + n.keys);
      const Twin o = output(k, n.queries);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.attention(q, at(x.query.rows(n.keys, n.keys + n.queries)), at(x.key.rows(0, n.keys)),
                      at(x.value.rows(0, n.keys)), at(o), spec(k));
      });
      expect_close(o, k.dtype == DType::f32 ? 2e-6 : 6e-3, k.dtype == DType::f32 ? 4e-6 : 8 * unit(k.dtype));
    }
}

// Scores far apart, one key that takes all the weight, and inputs that are denormal or negative zero.
TEST_F(CudaAttention, SurvivesHardValues) {
  constexpr std::int64_t kRows = 260;
  for (const Kind& k : {kKinds[0], kKinds[1], kKinds[6], kKinds[9]}) {
    SCOPED_TRACE(name_of_kind(k));
    const Shape shape{kRows, k.query_heads, k.d};
    const auto compare = [&](const Twin& query, const Twin& key, const Twin& value) {
      const Twin o = output(k, kRows);
      both([&](Operators& ops, Queue& q, Side at) { ops.attention(q, at(query), at(key), at(value), at(o), spec(k)); });
      expect_close(o, k.dtype == DType::f32 ? 1e-5 : 6e-3, k.dtype == DType::f32 ? 1e-4 : 8 * unit(k.dtype));
    };
    const Twin value = random(shape, k.dtype);
    compare(random(shape, k.dtype, 20.0), random(shape, k.dtype, 1.0), value);
    const Twin large = random({1, k.query_heads, k.d}, k.dtype, 40.0), rest = random(shape, k.dtype, 1e-3);
    both([&](Operators& ops, Queue& q, Side at) { ops.copy_rows(q, at(large), at(rest.rows(199, 200))); });
    compare(random(shape, k.dtype, 1.0), rest, value);
    const Twin small = random(shape, k.dtype, k.dtype == DType::f16 ? 1e-7 : 1e-39),
               zero = random(shape, k.dtype, -0.0);
    compare(small, small, value);
    compare(zero, small, value);
  }
}

TEST_F(CudaAttention, SlicesGiveTheSameBits) {
  for (const Kind& k : kKinds) check_slices(k, 1000);
  check_slices(kKinds[1], 1797);
}

TEST_F(CudaAttention, LongSequencesGiveTheSameBits) {
  check_slices({DType::bf16, 128, 4, 4, false}, 38736);
  check_slices({DType::bf16, 128, 16, 2, true}, 6001);
}

// Sequences behind each other have the bits of calls of their own, sanitised or not.
TEST_F(CudaAttention, SequencesAttendApart) {
  for (const Kind& k : kKinds) {
    if (k.causal) continue;
    for (const std::int64_t rows : {1, 100, 333}) {
      SCOPED_TRACE(fmt::format("{} rows {}", name_of_kind(k), rows));
      constexpr std::int64_t kSequences = 3;
      const Operands x = operands(k, kSequences * rows);
      const Twin together = output(k, kSequences * rows), apart = output(k, kSequences * rows);
      Operators::Attention all = spec(k);
      all.sequences = kSequences;
      all.sanitize = true;
      both([&](Operators& ops, Queue& q, Side at) {
        ops.attention(q, at(x.query), at(x.key), at(x.value), at(together), all);
      });
      for (std::int64_t s = 0; s < kSequences; ++s) {
        const auto part = [&](const Twin& t) { return t.rows(s * rows, (s + 1) * rows); };
        run(k, {part(x.query), part(x.key), part(x.value)}, part(apart));
      }
      EXPECT_TRUE(bytes_of(together) == bytes_of(apart));
      expect_close(together,
                   k.dtype == DType::f32    ? 2e-6
                   : k.dtype == DType::bf16 ? 6e-3
                                            : 8e-4,
                   k.dtype == DType::f32 ? 4e-6 : 8 * unit(k.dtype));
    }
  }
}

TEST_F(CudaAttention, SanitizesAsTheOperatorDoes) {
  for (const Kind& k : kKinds) {
    if (k.dtype == DType::f32 || k.causal) continue;
    SCOPED_TRACE(name_of_kind(k));
    const Operands x = operands(k, 90);
    const std::int64_t heads = k.query_heads;
    const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      for (int i = 0; i < 2; ++i) {
        const Twin value = values({bad[i]});
        ops.cast(q, value.gpu.reshape({1, 1}), at(x.value).at(10 + i).at(heads - 1 - i).slice(0, 5, 6).split(0, 1));
      }
    });
    const Twin plain = output(k, 90), clean = output(k, 90);
    run(k, x, plain);
    Operators::Attention sanitized = spec(k);
    sanitized.sanitize = true;
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      ops.sanitize(q, at(plain));
      ops.attention(q, at(x.query), at(x.key), at(x.value), at(clean), sanitized);
    });
    EXPECT_TRUE(bytes_of(plain) == bytes_of(clean));
  }
}

// Later scenes reuse memory of earlier ones: whatever lies behind the last row must not matter.
TEST_F(CudaAttention, IgnoresWhatLiesBehindTheKeys) {
  for (const Kind& k : {kKinds[0], kKinds[2], kKinds[1], kKinds[6], kKinds[9]}) {
    SCOPED_TRACE(name_of_kind(k));
    constexpr std::int64_t kRows = 100;
    const Operands x = operands(k, kRows + 64);
    const Operands seen{x.query.rows(0, kRows), x.key.rows(0, kRows), x.value.rows(0, kRows)};
    const Twin a = output(k, kRows), b = output(k, kRows);
    run(k, seen, a);
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      for (const Twin* t : {&x.query, &x.key, &x.value}) ops.fill_zero(q, at(t->rows(kRows, kRows + 64)));
    });
    run(k, seen, b);
    EXPECT_EQ(download(a), download(b));
  }
}

TEST(CudaAttentionEngines, OwnKernelsAgreeWithCudnn) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
  const auto cpu = make_cpu_machine();
  const auto own = make_cuda_machine(0, {AttentionEngine::own}), cudnn = make_cuda_machine(0, {AttentionEngine::cudnn});
  const auto own_queue = own->make_queue(), cudnn_queue = cudnn->make_queue();
  constexpr std::int64_t kRows = 300, kHeads = 4, kSize = 128;
  const Shape shape{kRows, kHeads, kSize};
  const Buffer host(*cpu, kRows * kHeads * kSize * 2, Place::host), input(*own, host.bytes(), Place::device);
  const Buffer first(*own, host.bytes(), Place::device), second(*cudnn, host.bytes(), Place::device);
  auto* values = static_cast<bf16_t*>(host.data());
  for (std::int64_t i = 0; i < shape.elements(); ++i) values[i] = to_bf16(static_cast<float>(i * 37 % 101) / 50 - 1);
  own->copy(*own_queue, host.tensor(shape, DType::bf16), input.tensor(shape, DType::bf16));
  own_queue->wait();
  const Tensor x = input.tensor(shape, DType::bf16);
  own->operators().attention(*own_queue, x, x, x, first.tensor(shape, DType::bf16), {0.1f});
  cudnn->operators().attention(*cudnn_queue, x, x, x, second.tensor(shape, DType::bf16), {0.1f});
  std::vector<bf16_t> a(static_cast<std::size_t>(shape.elements())), b(a.size());
  own->copy(*own_queue, first.tensor(shape, DType::bf16), Tensor(a.data(), shape, DType::bf16));
  cudnn->copy(*cudnn_queue, second.tensor(shape, DType::bf16), Tensor(b.data(), shape, DType::bf16));
  own_queue->wait();
  cudnn_queue->wait();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(to_f32(a[i]), to_f32(b[i]), 0.02) << i;
}

}  // namespace
}  // namespace h3::test
