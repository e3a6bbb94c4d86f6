#include "weights/convert.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace h3 {

template <typename Call>
static auto with_type(DType type, Call call) {
  switch (type) {
    case DType::f32:
      return call(float{});
    case DType::bf16:
      return call(bf16_t{});
    case DType::f16:
      return call(f16_t{});
    default:
      throw RunError(fmt::format("no conversion of {}", name_of(type)));
  }
}

void convert(const void* from, DType from_type, void* to, DType to_type, std::int64_t count) {
  if (from_type == to_type) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(to_type));
    return;
  }
  with_type(from_type, [&](auto f) {
    with_type(to_type, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const auto* x = static_cast<const From*>(from);
      auto* y = static_cast<To*>(to);
      for (std::int64_t i = 0; i < count; ++i) y[i] = from_f32<To>(to_f32(x[i]));
    });
  });
}

std::int64_t find_non_finite(const void* values, DType type, std::int64_t count) {
  return with_type(type, [&](auto f) -> std::int64_t {
    const auto* x = static_cast<const decltype(f)*>(values);
    for (std::int64_t i = 0; i < count; ++i)
      if (!std::isfinite(to_f32(x[i]))) return i;
    return -1;
  });
}

}  // namespace h3
