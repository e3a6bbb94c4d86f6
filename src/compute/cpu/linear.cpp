// Linear layers: tasks of up to 240 rows by 64 outputs; each walks k in blocks, packing the weights (and widening half
// rows) block by block into the cache.
#include <algorithm>

#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/gemm.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

constexpr std::int64_t kTaskRows = 240, kTaskOutputs = 4 * kPanel;

template <typename T>
void linear_task(const Tensor& x, const LinearWeights& w, const Tensor& y, std::int64_t row, std::int64_t output) {
  const std::int64_t k = x.size(1), m = std::min(kTaskRows, x.size(0) - row);
  const std::int64_t n = std::min(kTaskOutputs, w.weight.size(0) - output);
  float* sums = scratch(0, kTaskRows * kTaskOutputs);
  float* panel = scratch(1, kBlockK * kPanel);
  float* wide = scratch(2, kTaskRows * kBlockK);
  for (std::int64_t j = 0; j < k; j += kBlockK) {
    const std::int64_t depth = std::min(kBlockK, k - j);
    const float* a = wide;
    std::int64_t lda = kBlockK;
    if constexpr (std::is_same_v<T, float>) {
      a = x.as<float>() + row * x.stride(0) + j;
      lda = x.stride(0);
    } else {
      for (std::int64_t r = 0; r < m; ++r) widen(x.as<T>() + (row + r) * x.stride(0) + j, depth, wide + r * kBlockK);
    }
    for (std::int64_t c = 0; c < n; c += kPanel) {
      const T* rows = w.weight.as<T>() + (output + c) * w.weight.stride(0) + j;
      pack_panel(rows, w.weight.stride(0), std::min(kPanel, n - c), depth, panel);
      multiply_block(a, lda, m, panel, depth, sums + c, kTaskOutputs, j > 0);
    }
  }
  float room[kTaskOutputs];
  const float* bias = w.bias ? read_floats(w.bias, output, n, room) : nullptr;
  for (std::int64_t r = 0; r < m; ++r) {
    float* out = sums + r * kTaskOutputs;
    if (bias)
      for (std::int64_t c = 0; c < n; ++c) out[c] += bias[c];
    write_floats(y, (row + r) * y.stride(0) + output, n, out);
  }
}

}  // namespace

void CpuOperators::linear(Queue&, const Tensor& x, const LinearWeights& w, const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  CHECK_EQ(w.weight.rank(), 2);
  const std::int64_t m = x.size(0), k = x.size(1), n = w.weight.size(0);
  CHECK_GE(k, 1);
  check_matrix(x, m, k);
  check_matrix(w.weight, n, k);
  check_matrix(y, m, n);
  if (w.bias) check_vector(w.bias, n);
  CHECK_EQ(name_of(x.dtype), name_of(w.weight.dtype));
  if (y.dtype != DType::f32) CHECK_EQ(name_of(y.dtype), name_of(x.dtype));
  const std::int64_t row_tasks = (m + kTaskRows - 1) / kTaskRows,
                     tasks = row_tasks * ((n + kTaskOutputs - 1) / kTaskOutputs);
  with_float_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(dynamic) if (m * n * k > kParallelWork)
    for (std::int64_t t = 0; t < tasks; ++t)
      linear_task<T>(x, w, y, t % row_tasks * kTaskRows, t / row_tasks * kTaskOutputs);
  });
}

void CpuOperators::linear_swiglu(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& wide,
                                 const Tensor& y) {
  linear(q, x, w, wide);
  swiglu(q, wide, y);
}

}  // namespace h3
