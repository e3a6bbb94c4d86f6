#include <atomic>
#include <cmath>
#include <cstring>

#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

// Where sample `i` of a reflected axis of n samples lies: -1 is 1, n is n - 2 (spec/vae.md 5).
std::int64_t reflected(std::int64_t i, std::int64_t n) {
  return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

}  // namespace

void CpuOperators::pad_reflect(Queue&, const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& y) {
  CHECK_EQ(x.rank(), 4);
  CHECK_EQ(y.rank(), 4);
  CHECK_EQ(x.size(0), y.size(0));
  CHECK_EQ(x.size(1), y.size(1));
  check_rows(x);
  check_rows(y);
  const std::int64_t height = x.size(2), width = x.size(3);
  for (const std::int64_t pad : {top, y.size(2) - height - top}) {
    CHECK_LE(0, pad);
    CHECK_LT(pad, height);
  }
  for (const std::int64_t pad : {left, y.size(3) - width - left}) {
    CHECK_LE(0, pad);
    CHECK_LT(pad, width);
  }
  CHECK_EQ(name_of(x.dtype), name_of(y.dtype));
  with_float_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) collapse(2)
    for (std::int64_t c = 0; c < x.size(0); ++c)
      for (std::int64_t plane_row = 0; plane_row < x.size(1) * y.size(2); ++plane_row) {
        const std::int64_t t = plane_row / y.size(2), r = plane_row % y.size(2);
        const T* in = x.as<T>() + c * x.stride(0) + t * x.stride(1) + reflected(r - top, height) * x.stride(2);
        T* out = y.as<T>() + c * y.stride(0) + t * y.stride(1) + r * y.stride(2);
        for (std::int64_t i = 0; i < left; ++i) out[i] = in[left - i];
        std::memcpy(out + left, in, static_cast<std::size_t>(width) * sizeof(T));
        for (std::int64_t i = left + width; i < y.size(3); ++i) out[i] = in[reflected(i - left, width)];
      }
  });
}

void CpuOperators::unpatchify(Queue&, const Tensor& tokens, const Patch& patch, const Tensor& pixels) {
  CHECK_EQ(pixels.rank(), 4);
  const std::int64_t channels = pixels.size(0);
  CHECK_EQ(pixels.size(1), patch.t * patch.patch_t);
  CHECK_EQ(pixels.size(2), patch.h * patch.patch_h);
  CHECK_EQ(pixels.size(3), patch.w * patch.patch_w);
  check_matrix(tokens, patch.t * patch.h * patch.w, channels * patch.patch_t * patch.patch_h * patch.patch_w);
  check_rows(pixels);
  CHECK_EQ(name_of(tokens.dtype), name_of(pixels.dtype));
  const std::size_t size = size_of(tokens.dtype);
  const std::size_t run = static_cast<std::size_t>(patch.patch_w) * size;
#pragma omp parallel for schedule(static) collapse(2)
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t f = 0; f < pixels.size(1); ++f)
      for (std::int64_t y = 0; y < pixels.size(2); ++y) {
        const std::int64_t token = (f / patch.patch_t * patch.h + y / patch.patch_h) * patch.w;
        const std::int64_t value =
            ((c * patch.patch_t + f % patch.patch_t) * patch.patch_h + y % patch.patch_h) * patch.patch_w;
        char* out = pixels.as<char>() +
                    static_cast<std::size_t>(c * pixels.stride(0) + f * pixels.stride(1) + y * pixels.stride(2)) * size;
        for (std::int64_t x = 0; x < patch.w; ++x)
          std::memcpy(out + static_cast<std::size_t>(x) * run,
                      tokens.as<char>() + static_cast<std::size_t>((token + x) * tokens.stride(0) + value) * size, run);
      }
}

void CpuOperators::cross_fade(Queue&, const Tensor& older, int axis, const Tensor& y) {
  CHECK_EQ(y.rank(), 3);
  CHECK_LE(0, axis);
  CHECK_LT(axis, 3);
  H3_CHECK(older.shape == y.shape, older.shape.text() + " against " + y.shape.text());
  CHECK_EQ(name_of(older.dtype), name_of(y.dtype));
  const std::int64_t length = y.size(axis), columns = y.size(2);
  if (y.elements() == 0) return;
  with_float_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto newer_weight = [&](std::int64_t p) {
      return rounded<T>(static_cast<float>(p) / static_cast<float>(length));
    };
#pragma omp parallel for schedule(static) collapse(2) if (y.elements() > kParallelWork)
    for (std::int64_t plane = 0; plane < y.size(0); ++plane)
      for (std::int64_t row = 0; row < y.size(1); ++row) {
        const T* from = older.as<T>() + plane * older.stride(0) + row * older.stride(1);
        T* to = y.as<T>() + plane * y.stride(0) + row * y.stride(1);
        for (std::int64_t column = 0; column < columns; ++column) {
          const float b = newer_weight(axis == 0 ? plane : axis == 1 ? row : column);
          const float a = rounded<T>(1.0f - b);
          T& value = to[column * y.stride(2)];
          const float faded = rounded<T>(to_f32(from[column * older.stride(2)]) * a);
          value = from_f32<T>(faded + rounded<T>(to_f32(value) * b));
        }
      }
  });
}

void CpuOperators::frames_to_u8(Queue&, const Tensor& x, std::span<const float, 3> mean, std::span<const float, 3> std,
                                bool truncate, const Tensor& y, const Tensor& nans) {
  CHECK_EQ(x.rank(), 4);
  CHECK_EQ(y.rank(), 4);
  CHECK_EQ(x.size(0), 3);
  CHECK_EQ(y.size(3), 3);
  for (int axis = 0; axis < 3; ++axis) CHECK_EQ(y.size(axis), x.size(axis + 1));
  CHECK_EQ(name_of(x.dtype), name_of(DType::f32));
  CHECK_EQ(name_of(y.dtype), name_of(DType::u8));
  check_rows(x);
  check_rows(y);
  check_vector(nans, 1);
  CHECK_EQ(name_of(nans.dtype), name_of(DType::i32));
  constexpr float kInteger = 8388608.0f;  // 2^23: adding it rounds to an integer, half to even
  const std::int64_t frames = x.size(1), height = x.size(2), width = x.size(3);
  std::int32_t count = 0;
#pragma omp parallel for schedule(static) collapse(2) reduction(+ : count)
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t r = 0; r < height; ++r) {
      auto* out = y.as<std::uint8_t>() + f * y.stride(0) + r * y.stride(1);
      const std::int64_t step = y.stride(2);
      for (std::size_t c = 0; c < 3; ++c) {
        const float* in =
            x.as<float>() + static_cast<std::int64_t>(c) * x.stride(0) + f * x.stride(1) + r * x.stride(2);
        for (std::int64_t i = 0; i < width; ++i) {
          const float value = in[i] * std[c] + mean[c];
          count += std::isnan(value) ? 1 : 0;
          // A NaN fails the first comparison and becomes 0.
          const float positive = value > 0.0f ? value : 0.0f;
          const float level = (positive < 1.0f ? positive : 1.0f) * 255.0f;
          const float whole = truncate ? level : (level + kInteger) - kInteger;
          out[i * step + static_cast<std::int64_t>(c)] = static_cast<std::uint8_t>(whole);
        }
      }
    }
  *nans.as<std::int32_t>() += count;
}

}  // namespace h3
