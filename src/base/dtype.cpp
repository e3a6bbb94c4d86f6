#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace h3 {

namespace {
struct Entry {
  DType dtype;
  std::size_t size;
  std::string_view name;
  std::string_view safetensors;
};
constexpr std::array<Entry, 9> kEntries{{{DType::f32, 4, "f32", "F32"},
                                         {DType::bf16, 2, "bf16", "BF16"},
                                         {DType::f16, 2, "f16", "F16"},
                                         {DType::f8e4m3, 1, "f8e4m3", "F8_E4M3"},
                                         {DType::i8, 1, "i8", "I8"},
                                         {DType::u8, 1, "u8", "U8"},
                                         {DType::i32, 4, "i32", "I32"},
                                         {DType::i64, 8, "i64", "I64"},
                                         {DType::f64, 8, "f64", "F64"}}};
const Entry& entry(DType dtype) {
  return kEntries[static_cast<std::size_t>(dtype)];
}
}  // namespace

std::size_t size_of(DType dtype) {
  return entry(dtype).size;
}
std::string_view name_of(DType dtype) {
  return entry(dtype).name;
}
std::string_view safetensors_name(DType dtype) {
  return entry(dtype).safetensors;
}

DType dtype_from_safetensors(std::string_view name) {
  for (const Entry& e : kEntries)
    if (e.safetensors == name) return e.dtype;
  throw UserError("", "dtype", std::string(name), "one of F32, BF16, F16, F8_E4M3, I8, U8, I32, I64, F64");
}

}  // namespace h3
