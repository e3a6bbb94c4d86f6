#include <cstring>

#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

char* bytes_at(const Tensor& t, std::int64_t element) {
  return t.as<char>() + element * static_cast<std::int64_t>(size_of(t.dtype));
}

}  // namespace

void CpuOperators::cast(Queue&, const Tensor& x, const Tensor& y) {
  for_each_piece<2>({x, y}, [&](const auto& at, std::int64_t n) {
    write_floats(y, at[1], n, read_floats(x, at[0], n, scratch(0, n)));
  });
}

void CpuOperators::copy_rows(Queue&, const Tensor& x, const Tensor& y) {
  CHECK_EQ(name_of(x.dtype), name_of(y.dtype));
  for_each_piece<2>({x, y}, [&](const auto& at, std::int64_t n) {
    std::memcpy(bytes_at(y, at[1]), bytes_at(x, at[0]), static_cast<std::size_t>(n) * size_of(x.dtype));
  });
}

void CpuOperators::gather(Queue&, const Tensor& x, const Tensor& index, const Tensor& y) {
  CHECK_EQ(x.rank(), 2);
  CHECK_EQ(index.rank(), 1);
  const std::int64_t m = index.size(0), n = x.size(1);
  check_matrix(x, x.size(0), n);
  check_matrix(y, m, n);
  check_vector(index, m);
  CHECK_EQ(name_of(index.dtype), name_of(DType::i32));
  CHECK_EQ(name_of(x.dtype), name_of(y.dtype));
  const auto* rows = index.as<std::int32_t>();
  for (std::int64_t i = 0; i < m; ++i) {
    CHECK_LE(0, rows[i]);
    CHECK_LT(rows[i], x.size(0));
  }
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(x.dtype);
#pragma omp parallel for schedule(static) if (m * n > kParallelWork)
  for (std::int64_t i = 0; i < m; ++i)
    std::memcpy(bytes_at(y, i * y.stride(0)), bytes_at(x, rows[i] * x.stride(0)), bytes);
}

void CpuOperators::fill_zero(Queue&, const Tensor& x) {
  for_each_piece<1>({x}, [&](const auto& at, std::int64_t n) {
    std::memset(bytes_at(x, at[0]), 0, static_cast<std::size_t>(n) * size_of(x.dtype));
  });
}

}  // namespace h3
