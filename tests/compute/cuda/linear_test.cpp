#include <algorithm>
#include <cmath>

#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/gemm_choice.h"
#include "twins.h"

namespace h3::test {
namespace {

struct Layer {
  std::int64_t k, n;
  DType dtype;
  bool bias;
  DType y;
};

// The released model's layers, those of small models, and shapes that no library takes.
const std::vector<Layer> kFullLayers = {
    {5376, 21504, DType::bf16, false, DType::bf16}, {7168, 5376, DType::bf16, false, DType::bf16},
    {5376, 28672, DType::bf16, false, DType::bf16}, {14336, 5376, DType::bf16, false, DType::bf16},
    {5120, 5376, DType::bf16, true, DType::bf16},   {25600, 5120, DType::bf16, false, DType::bf16},
    {2048, 6144, DType::f16, true, DType::f16},     {2048, 16384, DType::f16, true, DType::f16},
    {8192, 2048, DType::f16, true, DType::f16},     {96, 5376, DType::f32, true, DType::f32},
    {5376, 96, DType::f32, true, DType::f32},       {2048, 3072, DType::f32, true, DType::f32},
    {2048, 2048, DType::f16, true, DType::f16},     {6144, 3072, DType::f16, true, DType::f32},
    {2048, 2048, DType::bf16, true, DType::f32}};
const std::vector<Layer> kSmallLayers = {
    {192, 768, DType::bf16, false, DType::bf16}, {256, 192, DType::bf16, false, DType::bf16},
    {192, 1024, DType::f32, false, DType::f32},  {512, 192, DType::f32, false, DType::f32},
    {192, 768, DType::f32, true, DType::f32},    {128, 384, DType::f16, true, DType::f16},
    {512, 128, DType::f16, true, DType::f16},    {192, 96, DType::bf16, true, DType::f32},
    {32, 32, DType::f32, true, DType::f32},      {30, 50, DType::f32, true, DType::f32},
    {33, 7, DType::bf16, true, DType::bf16},     {35, 64, DType::f16, false, DType::f32}};

std::string name_of_layer(const Layer& l) {
  return fmt::format("{}x{} {}->{}{}", l.k, l.n, name_of(l.dtype), name_of(l.y), l.bias ? " bias" : "");
}

class CudaLinear : public CudaTest {
 protected:
  Twin random_weight(const Layer& l) { return random({l.n, l.k}, l.dtype, 1.0 / std::sqrt(static_cast<double>(l.k))); }
  Twin random_bias(const Layer& l) { return l.bias ? random({l.n}, bias_type(l)) : Twin(); }
  // A float32 result meets both kinds of bias: its own type for f16 layers, the operands' for the others.
  static DType bias_type(const Layer& l) { return l.dtype == DType::f16 ? l.y : l.dtype; }

  static LinearWeights weights(const Layer& l, const Twin& weight, const Twin& bias, Side at) {
    return {at(weight), bias ? at(bias) : Tensor(), l.n};
  }
  void run(const Layer& l, const Twin& x, const Twin& weight, const Twin& bias, const Twin& y) {
    on_gpu([&](Operators& ops, Queue& q, Side at) { ops.linear(q, at(x), weights(l, weight, bias, at), at(y)); });
  }
};

TEST_F(CudaLinear, EqualsTheOracle) {
  for (const Layer& l : kSmallLayers)
    for (const std::int64_t m : {1, 5, 130})
      for (const std::int64_t gap : {0, 8, 3}) {
        SCOPED_TRACE(fmt::format("{} m {} gap {}", name_of_layer(l), m, gap));
        const Twin x = random({m, l.k}, l.dtype, 1.0, gap), w = random_weight(l), b = random_bias(l);
        const Twin y = poisoned({m, l.n}, l.y, gap);
        both([&](Operators& ops, Queue& q, Side at) { ops.linear(q, at(x), weights(l, w, b, at), at(y)); });
        expect_close(y, flips(l.y), l.y == DType::f32 ? 1e-5 : 4 * unit(l.y));
      }
}

// A bias of higher precision than the result is added before the one rounding.
TEST_F(CudaLinear, TakesAFloatBias) {
  const Twin x = random({19, 64}, DType::bf16), w = random({40, 64}, DType::bf16, 0.125), b = random({40}, DType::f32);
  const Twin y = poisoned({19, 40}, DType::bf16);
  both([&](Operators& ops, Queue& q, Side at) { ops.linear(q, at(x), {at(w), at(b), 40}, at(y)); });
  expect_close(y, flips(DType::bf16), 4 * unit(DType::bf16));
}

// A float32 product on half operands (Operators::split_halves) against the one of float32.
TEST_F(CudaLinear, HalvesGiveTheFloatProduct) {
  constexpr std::int64_t kRows = 67, kDepth = 2048, kOutputs = 192;
  const Twin x = random({kRows, kDepth}, DType::f32), w = random({kOutputs, kDepth}, DType::f32, 0.022);
  const Twin b = random({kOutputs}, DType::f32), y = poisoned({kRows, kOutputs}, DType::f32);
  const Twin halves = poisoned({kRows, 3 * kDepth}, DType::f16), split = poisoned({kOutputs, 3 * kDepth}, DType::f16),
             weight = poisoned({kOutputs, 3 * kDepth}, DType::f16);
  const auto part = [](const Twin& t, std::int64_t i) { return t.slice(1, i * kDepth, (i + 1) * kDepth); };
  cpu_->operators().linear(*cpu_queue_, x.cpu, {w.cpu, b.cpu, kOutputs}, y.cpu);
  on_gpu([&](Operators& ops, Queue& q, Side at) {
    ops.split_halves(q, at(x), at(halves));
    ops.split_halves(q, at(w), at(split));
    for (const auto& [from, to] : {std::pair{0, 0}, {2, 1}, {0, 2}})
      ops.copy_rows(q, at(part(split, from)), at(part(weight, to)));
    ops.linear(q, at(halves), {at(weight), at(b), kOutputs}, at(y));
  });
  expect_close(y, 2e-5, 1e-4);
}

class CudaLinearSlices : public CudaLinear {
 protected:
  static constexpr std::int64_t kRows = 1031;

  void check(const Layer& l) {
    SCOPED_TRACE(name_of_layer(l));
    const Twin x = random({kRows, l.k}, l.dtype), w = random_weight(l), b = random_bias(l);
    const Twin full = poisoned({kRows, l.n}, l.y), y = poisoned({kRows, l.n}, l.y);
    run(l, x, w, b, full);
    const std::vector<std::uint8_t> expected = download(full);
    const auto compare = [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
      run(l, x.rows(r0, r1), w.rows(c0, c1), b ? b.rows(c0, c1) : b, y.rows(r0, r1).slice(1, c0, c1));
      const std::vector<std::uint8_t> got = download(y);
      const auto size = static_cast<std::int64_t>(size_of(l.y));
      std::int64_t wrong = 0;
      for (std::int64_t r = r0; r < r1; ++r) {
        const auto begin = (r * l.n + c0) * size, end = (r * l.n + c1) * size;
        wrong += std::equal(got.begin() + begin, got.begin() + end, expected.begin() + begin) ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0) << "rows of [" << r0 << ", " << r1 << ") with outputs [" << c0 << ", " << c1 << ") differ";
    };
    for (const auto& [r0, r1] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 1}, {kRows - 1, kRows}, {7, 10}, {100, 229}, {3, 900}, {512, 768}})
      compare(r0, r1, 0, l.n);
    for (const auto& [c0, c1] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 128}, {128, 384}, {16, 48}, {8, 16}, {5, 12}, {l.n - 1, l.n}, {1, l.n}})
      if (c1 <= l.n && c0 >= 0) {
        compare(0, kRows, c0, c1);
        compare(77, 80, c0, c1);
      }
  }
};

TEST_F(CudaLinearSlices, SmallLayersGiveTheSameBits) {
  for (const Layer& l : kSmallLayers) check(l);
}

TEST_F(CudaLinearSlices, FullLayersGiveTheSameBits) {
  for (const Layer& l : kFullLayers) check(l);
}

// A long clip's rows against the same rows in a short call.
TEST_F(CudaLinearSlices, LongInputsGiveTheSameBits) {
  constexpr std::int64_t kLong = 38222, kSome = 300;
  for (const Layer& l : {kFullLayers[0], kFullLayers[1], kFullLayers[7], kFullLayers[9]}) {
    SCOPED_TRACE(name_of_layer(l));
    const Twin x = random({kLong, l.k}, l.dtype), w = random_weight(l), b = random_bias(l);
    const Twin full = poisoned({kLong, l.n}, l.y), some = poisoned({kSome, l.n}, l.y),
               again = poisoned({kSome, l.n}, l.y);
    run(l, x, w, b, full);
    for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{20001}, kLong - kSome}) {
      run(l, x.rows(begin, begin + kSome), w, b, some);
      on_gpu(
          [&](Operators& ops, Queue& q, Side at) { ops.copy_rows(q, at(full.rows(begin, begin + kSome)), at(again)); });
      EXPECT_EQ(download(some), download(again)) << "rows from " << begin;
    }
  }
}

// Each entry of the table names an algorithm that the library offers where the entry says so.
TEST_F(CudaLinear, ChoicesAreOffered) {
  if (gpu_->capability() != "9.0") GTEST_SKIP();
  const auto queue = gpu_->make_queue();
  for (const Layer& l : kFullLayers) {
    GemmKey key{l.k, l.n, l.dtype, l.y, {}};
    if (l.bias) key.bias = bias_type(l);
    const GemmChoice* choice = gemm_choice(90, key);
    if (!choice) continue;
    const auto offered =
        GemmTable::candidates(cuda_queue(*queue).blas(), CudaQueue::kWorkspace, key, choice->nominal_rows);
    EXPECT_TRUE(find_config(offered, choice->config)) << name_of_layer(l);
  }
}

TEST_F(CudaLinear, AlgorithmsTravel) {
  const Layer l = kSmallLayers[0];
  const Twin x = random({7, l.k}, l.dtype), w = random_weight(l), y = poisoned({7, l.n}, l.y),
             z = poisoned({7, l.n}, l.y);
  run(l, x, w, {}, y);
  const std::string text = gpu_operators().algorithms();
  EXPECT_NE(text.find("gemm 192 768 bf16 bf16 none "), std::string::npos) << text;
  const auto other = make_cuda_machine(0);
  other->operators().adopt_algorithms(text);
  EXPECT_EQ(other->operators().algorithms(), text);
  const auto queue = other->make_queue();
  other->operators().linear(*queue, x.gpu, {w.gpu, {}, l.n}, z.gpu);
  queue->wait();
  EXPECT_EQ(download(y), download(z));
}

TEST_F(CudaLinear, AcceptsNothing) {
  const Twin x = random({0, 64}, DType::bf16), w = random({32, 64}, DType::bf16), y = poisoned({0, 32}, DType::bf16);
  on_gpu([&](Operators& ops, Queue& q, Side at) { ops.linear(q, at(x), {at(w), {}, 32}, at(y)); });
}

TEST_F(CudaLinear, RefusesHostMemory) {
  const Twin x = random({4, 64}, DType::bf16), w = random({32, 64}, DType::bf16), y = poisoned({4, 32}, DType::bf16);
  EXPECT_THROW(gpu_operators().linear(*gpu_queue_, x.cpu, {w.gpu, {}, 32}, y.gpu), std::runtime_error);
  EXPECT_THROW(gpu_operators().linear(*cpu_queue_, x.gpu, {w.gpu, {}, 32}, y.gpu), std::runtime_error);
}

}  // namespace
}  // namespace h3::test
