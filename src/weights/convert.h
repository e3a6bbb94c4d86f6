// Conversion of runs of values between f32, bf16 and f16, each rounded once, to nearest even.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace h3 {

void convert(const void* from, DType from_type, void* to, DType to_type, std::int64_t count);

// The first value that is NaN or infinite, or -1. f32, bf16 or f16.
std::int64_t find_non_finite(const void* values, DType type, std::int64_t count);

}  // namespace h3
