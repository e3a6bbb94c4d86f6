#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/norm_math.h"

namespace h3 {

using namespace cpu;

namespace {

// Rotates channel pairs (j, j + p) of one head.
template <typename T>
void rotate(float* head, const float* cosine, const float* sine, std::int64_t p, bool round_products) {
  for (std::int64_t j = 0; j < p; ++j) {
    const float a = head[j], b = head[j + p];
    float ac = a * cosine[j], bs = b * sine[j], bc = b * cosine[j], as = a * sine[j];
    if (round_products) {
      ac = rounded<T>(ac);
      bs = rounded<T>(bs);
      bc = rounded<T>(bc);
      as = rounded<T>(as);
    }
    head[j] = ac - bs;
    head[j + p] = bc + as;
  }
}

}  // namespace

void CpuOperators::head_norm_rope(Queue&, const Tensor& x, const HeadNormRope& spec) {
  CHECK_EQ(x.rank(), 3);
  check_rows(x);
  const std::int64_t m = x.size(0), heads = x.size(1), d = x.size(2);
  const std::int64_t p = spec.cos ? spec.cos.size(1) : 0;
  if (spec.weight) check_vector(spec.weight, d);
  if (spec.cos) {
    check_matrix(spec.cos, m, p);
    check_matrix(spec.sin, m, p);
    CHECK_LE(2 * p, d);
  }
  const float* weight = spec.norm ? read_vector(spec.weight, 4) : nullptr;
  with_float_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (m * heads * d > kParallelWork)
    for (std::int64_t r = 0; r < m; ++r) {
      const float* cosine = p ? read_row(spec.cos, r, scratch(2, p)) : nullptr;
      const float* sine = p ? read_row(spec.sin, r, scratch(3, p)) : nullptr;
      float* head = scratch(1, d);
      for (std::int64_t h = 0; h < heads; ++h) {
        T* values = x.as<T>() + r * x.stride(0) + h * x.stride(1);
        widen(values, d, head);
        if (spec.norm) normalize_row<T>(head, d, weight, spec.eps, spec.rounding, head);
        rotate<T>(head, cosine, sine, p, spec.round_products);
        narrow(head, d, values);
      }
    }
  });
}

}  // namespace h3
