#include <algorithm>
#include <cmath>

#include "twins.h"

namespace h3::test {
namespace {

class CudaLinearSwiglu : public CudaTest {
 protected:
  struct Layer {
    std::int64_t k, f;
    DType dtype;
  };
  struct Operands {
    Twin x, weight, bias, wide, y;
  };

  Operands operands(const Layer& l, std::int64_t m, std::int64_t gap = 0) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(l.k));
    return {random({m, l.k}, l.dtype, 1.0, gap), random({2 * l.f, l.k}, l.dtype, deviation), random({2 * l.f}, l.dtype),
            poisoned({m, 2 * l.f}, l.dtype), poisoned({m, l.f}, l.dtype, gap)};
  }
  static LinearWeights weights(const Operands& o, Side at) { return {at(o.weight), at(o.bias), o.weight.cpu.size(0)}; }
};

TEST_F(CudaLinearSwiglu, EqualsTheOracle) {
  for (const Layer& l : {Layer{64, 128, DType::f16},
                         {192, 256, DType::f16},
                         {128, 512, DType::f16},
                         {96, 128, DType::f16},
                         {64, 72, DType::f16},
                         {64, 128, DType::bf16},
                         {64, 128, DType::f32}})
    for (const std::int64_t m : {1, 5, 192, 193, 421})
      for (const std::int64_t gap : {0, 8}) {
        SCOPED_TRACE(fmt::format("{} -> {} {} m {} gap {}", l.k, l.f, name_of(l.dtype), m, gap));
        const Operands o = operands(l, m, gap);
        both([&](Operators& ops, Queue& q, Side at) {
          ops.linear_swiglu(q, at(o.x), weights(o, at), at(o.wide), at(o.y));
        });
        expect_close(o.y, 4 * flips(l.dtype), l.dtype == DType::f32 ? 2e-5 : 8 * unit(l.dtype));
      }
}

// The two operators round at the same places; cuBLASLt's sums over k may run in another order than the kernel's.
TEST_F(CudaLinearSwiglu, EqualsItsTwoOperators) {
  for (const Layer& l : {Layer{2048, 8192, DType::f16}, {128, 512, DType::f16}}) {
    const Operands o = operands(l, 1797);
    const Twin fused = poisoned({1797, l.f}, l.dtype), apart = poisoned({1797, l.f}, l.dtype);
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      ops.linear(q, at(o.x), weights(o, at), at(o.wide));
      ops.swiglu(q, at(o.wide), at(apart));
      ops.linear_swiglu(q, at(o.x), weights(o, at), at(o.wide), at(fused));
    });
    const std::vector<std::uint8_t> a = download(fused), b = download(apart);
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < a.size(); i += 2) differing += a[i] != b[i] || a[i + 1] != b[i + 1] ? 1 : 0;
    EXPECT_LE(differing, static_cast<std::int64_t>(a.size() / 2 / 100)) << l.k;
  }
}

TEST_F(CudaLinearSwiglu, SlicesGiveTheSameBits) {
  constexpr std::int64_t kRows = 1031;
  for (const Layer& l : {Layer{2048, 8192, DType::f16}, {128, 512, DType::f16}}) {
    const Operands o = operands(l, kRows);
    const Twin some = poisoned({kRows, l.f}, l.dtype);
    on_gpu(
        [&](Operators& ops, Queue& q, Side at) { ops.linear_swiglu(q, at(o.x), weights(o, at), at(o.wide), at(o.y)); });
    const std::vector<std::uint8_t> expected = download(o.y);
    for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 1}, {kRows - 1, kRows}, {7, 10}, {100, 229}, {3, 900}, {384, 768}, {0, kRows}}) {
      on_gpu([&](Operators& ops, Queue& q, Side at) {
        ops.linear_swiglu(q, at(o.x.rows(begin, end)), weights(o, at), at(o.wide.rows(begin, end)),
                          at(some.rows(begin, end)));
      });
      const std::vector<std::uint8_t> got = download(some);
      const std::int64_t row = l.f * 2;
      EXPECT_TRUE(std::equal(got.begin() + begin * row, got.begin() + end * row, expected.begin() + begin * row))
          << "rows of [" << begin << ", " << end << ") differ";
    }
  }
}

}  // namespace
}  // namespace h3::test
