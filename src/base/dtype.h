// Element types, and the conversions between float32 and the two half formats. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace h3 {

enum class DType : std::uint8_t { f32, bf16, f16, f8e4m3, i8, u8, i32, i64, f64 };

std::size_t size_of(DType dtype);
// Lower-case names of this program ("bf16").
std::string_view name_of(DType dtype);
// Names of safetensors headers ("BF16"); throws UserError for one that the program does not know.
DType dtype_from_safetensors(std::string_view name);
std::string_view safetensors_name(DType dtype);

struct bf16_t {
  std::uint16_t bits;
};
struct f16_t {
  std::uint16_t bits;
};

inline float to_f32(float x) {
  return x;
}
inline float to_f32(bf16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline bf16_t to_bf16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// The f16 conversions choose by masks, not branches, so that loops over them become vector code.
inline std::uint32_t select_bits(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline float to_f32(f16_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x.bits & 0x7fffu) << 13;
  // The product moves the exponent by 127 - 15; it is exact, for subnormals too.
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(sign | select_bits(magnitude >= 0x0f800000u, magnitude | 0x7f800000u, finite));
}

inline f16_t to_f16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  // Adding 0.5 lets the float unit round a subnormal (a multiple of 2^-24) to nearest even.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  const std::uint32_t finite = select_bits(magnitude < 0x38800000u, subnormal, normal);
  const std::uint32_t bounded = select_bits(magnitude >= 0x477ff000u, 0x7c00u, finite);
  return {static_cast<std::uint16_t>(sign | select_bits(magnitude > 0x7f800000u, 0x7e00u, bounded))};
}

inline float round_to(DType dtype, float x) {
  if (dtype == DType::bf16) return to_f32(to_bf16(x));
  if (dtype == DType::f16) return to_f32(to_f16(x));
  return x;
}

template <typename T>
T from_f32(float x);
template <>
inline float from_f32<float>(float x) {
  return x;
}
template <>
inline bf16_t from_f32<bf16_t>(float x) {
  return to_bf16(x);
}
template <>
inline f16_t from_f32<f16_t>(float x) {
  return to_f16(x);
}

}  // namespace h3
