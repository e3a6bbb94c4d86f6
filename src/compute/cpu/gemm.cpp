#include "compute/cpu/gemm.h"

#include <algorithm>

#include "base/dtype.h"
#include "compute/cpu/lanes.h"
#include "compute/cpu/rows.h"

namespace h3::cpu {

namespace {

constexpr int kRows = 6;  // 6 x 2 vectors of sums, 2 of the panel, one of A and one product: 16 registers

template <int R>
void multiply_rows(const float* a, std::int64_t lda, const float* panel, std::int64_t k, float* c, std::int64_t ldc,
                   bool accumulate) {
  F8 left[R], right[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) left[r] = right[r] = splat(0.0f);
  for (std::int64_t j = 0; j < k; ++j) {
    const F8 l = load8(panel + j * kPanel);
    const F8 h = load8(panel + j * kPanel + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F8 x = splat(a[r * lda + j]);
      left[r] += x * l;
      right[r] += x * h;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* out = c + r * ldc;
    store8(out, accumulate ? load8(out) + left[r] : left[r]);
    store8(out + 8, accumulate ? load8(out + 8) + right[r] : right[r]);
  }
}

}  // namespace

void multiply_block(const float* a, std::int64_t lda, std::int64_t m, const float* panel, std::int64_t k, float* c,
                    std::int64_t ldc, bool accumulate) {
  std::int64_t r = 0;
  for (; r + kRows <= m; r += kRows) multiply_rows<kRows>(a + r * lda, lda, panel, k, c + r * ldc, ldc, accumulate);
  a += r * lda;
  c += r * ldc;
  switch (m - r) {
    case 5:
      return multiply_rows<5>(a, lda, panel, k, c, ldc, accumulate);
    case 4:
      return multiply_rows<4>(a, lda, panel, k, c, ldc, accumulate);
    case 3:
      return multiply_rows<3>(a, lda, panel, k, c, ldc, accumulate);
    case 2:
      return multiply_rows<2>(a, lda, panel, k, c, ldc, accumulate);
    case 1:
      return multiply_rows<1>(a, lda, panel, k, c, ldc, accumulate);
    default:
      return;
  }
}

void multiply_panel(const float* a, std::int64_t lda, std::int64_t m, const float* panel, std::int64_t k, float* c,
                    std::int64_t ldc) {
  for (std::int64_t j = 0; j < k; j += kBlockK)
    multiply_block(a + j, lda, m, panel + j * kPanel, std::min(kBlockK, k - j), c, ldc, j > 0);
}

template <typename T>
void pack_panel(const T* rows, std::int64_t stride, std::int64_t columns, std::int64_t k, float* panel) {
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t j = 0; j < k; ++j) panel[j * kPanel + c] = to_f32(rows[c * stride + j]);
  for (std::int64_t c = columns; c < kPanel; ++c)
    for (std::int64_t j = 0; j < k; ++j) panel[j * kPanel + c] = 0.0f;
}

template void pack_panel(const float*, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_panel(const bf16_t*, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_panel(const f16_t*, std::int64_t, std::int64_t, std::int64_t, float*);

}  // namespace h3::cpu
