// The one product kernel that linear layers, attention and convolutions share: rows of A times a packed panel of 16
// columns. Lanes run over columns, so each output is a sum of its own in the order of k, cut into blocks of kBlockK
// whose sums are added in order; nothing depends on which rows or columns share a call.
#pragma once

#include <cstdint>

namespace h3::cpu {

constexpr std::int64_t kPanel = 16;    // columns of a panel
constexpr std::int64_t kBlockK = 128;  // products summed before they join the running sum

// c[m, 16] = a[m, k] . panel[k, 16], or c += where `accumulate`; k <= kBlockK for the documented order. Row strides
// lda and ldc in floats.
void multiply_block(const float* a, std::int64_t lda, std::int64_t m, const float* panel, std::int64_t k, float* c,
                    std::int64_t ldc, bool accumulate);

// The same over any k, block by block.
void multiply_panel(const float* a, std::int64_t lda, std::int64_t m, const float* panel, std::int64_t k, float* c,
                    std::int64_t ldc);

// panel[k, 16] from `columns` (1..16) rows of k values each, `stride` apart; missing columns become 0.
template <typename T>
void pack_panel(const T* rows, std::int64_t stride, std::int64_t columns, std::int64_t k, float* panel);

}  // namespace h3::cpu
