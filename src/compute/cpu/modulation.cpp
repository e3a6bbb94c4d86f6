#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/norm_math.h"

namespace h3 {

using namespace cpu;

namespace {

// The table row of each token; all are checked before any is used.
const std::int32_t* checked_index(const Tensor& index, std::int64_t m, std::int64_t table_rows) {
  check_vector(index, m);
  CHECK_EQ(name_of(index.dtype), name_of(DType::i32));
  const auto* rows = index.as<std::int32_t>();
  for (std::int64_t i = 0; i < m; ++i) {
    CHECK_LE(0, rows[i]);
    CHECK_LT(rows[i], table_rows);
  }
  return rows;
}

void check_table(const Tensor& table, std::int64_t h) {
  CHECK_EQ(table.rank(), 2);
  check_matrix(table, table.size(0), h);
}

// y = modulated row by row, of x as it is or normalised first.
template <typename Prepare>
void modulate_rows(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& index, const Tensor& y,
                   Prepare prepare) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), h = x.size(1);
  check_matrix(x, m, h);
  check_matrix(y, m, h);
  check_table(scale, h);
  check_table(shift, h);
  CHECK_EQ(scale.size(0), shift.size(0));
  const std::int32_t* table_row = checked_index(index, m, scale.size(0));
  with_float_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (m * h > kParallelWork)
    for (std::int64_t r = 0; r < m; ++r) {
      const float* in = prepare(zero, read_row(x, r, scratch(0, h)), h);
      const float* a = read_row(scale, table_row[r], scratch(2, h));
      const float* b = read_row(shift, table_row[r], scratch(3, h));
      float* out = scratch(1, h);
      for (std::int64_t i = 0; i < h; ++i) out[i] = modulated<T>(in[i], a[i], b[i]);
      write_floats(y, r * y.stride(0), h, out);
    }
  });
}

}  // namespace

void CpuOperators::modulate(Queue&, const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& index,
                            const Tensor& y) {
  modulate_rows(x, scale, shift, index, y, [](auto, const float* row, std::int64_t) { return row; });
}

void CpuOperators::norm_modulate(Queue&, const Tensor& x, const Tensor& weight, float eps, const Tensor& scale,
                                 const Tensor& shift, const Tensor& index, const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  if (weight) check_vector(weight, x.size(1));
  const float* w = read_vector(weight, 4);
  modulate_rows(x, scale, shift, index, y, [&](auto zero, const float* row, std::int64_t h) {
    float* normed = scratch(1, h);
    normalize_row<decltype(zero)>(row, h, w, eps, NormRounding::once, normed);
    return static_cast<const float*>(normed);
  });
}

void CpuOperators::gated_add(Queue&, const Tensor& x, const Tensor& gate, const Tensor& index, const Tensor& a) {
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), h = x.size(1);
  check_matrix(x, m, h);
  check_matrix(a, m, h);
  check_table(gate, h);
  const std::int32_t* table_row = checked_index(index, m, gate.size(0));
  with_float_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (m * h > kParallelWork)
    for (std::int64_t r = 0; r < m; ++r) {
      const float* in = read_row(x, r, scratch(0, h));
      const float* g = read_row(gate, table_row[r], scratch(2, h));
      const float* update = read_row(a, r, scratch(3, h));
      float* out = scratch(1, h);
      for (std::int64_t i = 0; i < h; ++i) out[i] = in[i] + rounded<T>(g[i] * update[i]);
      write_floats(x, r * x.stride(0), h, out);
    }
  });
}

}  // namespace h3
