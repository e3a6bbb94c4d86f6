#include "compute/cpu/rows.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace h3::cpu {

namespace {

struct FreeMemory {
  void operator()(float* p) const { std::free(p); }
};
struct Slot {
  std::unique_ptr<float, FreeMemory> memory;
  std::int64_t floats = 0;
};

}  // namespace

float* scratch(int slot, std::int64_t n) {
  constexpr std::size_t kSlots = 8, kAlign = 64;
  thread_local std::array<Slot, kSlots> slots;
  Slot& s = slots.at(static_cast<std::size_t>(slot));
  if (s.floats < n) {
    s.memory.reset();
    const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    s.memory.reset(static_cast<float*>(std::aligned_alloc(kAlign, bytes)));
    if (!s.memory) throw std::bad_alloc();
    s.floats = n;
  }
  return s.memory.get();
}

std::int64_t row_count(const Tensor& t) {
  std::int64_t n = 1;
  for (int i = 0; i + 1 < t.rank(); ++i) n *= t.size(i);
  return n;
}

std::int64_t row_offset(const Tensor& t, std::int64_t row) {
  std::int64_t offset = 0;
  for (int i = t.rank() - 2; i > 0; --i) {
    offset += row % t.size(i) * t.stride(i);
    row /= t.size(i);
  }
  return t.rank() > 1 ? offset + row * t.stride(0) : 0;
}

void check_rows(const Tensor& t) {
  CHECK_GE(t.rank(), 1);
  if (t.elements() == 0) return;
  H3_CHECK(t.data != nullptr, "tensor " + t.shape.text() + " without memory");
  H3_CHECK(t.place == Place::host, "a device tensor given to the CPU");
  if (t.size(-1) > 1) CHECK_EQ(t.stride(-1), 1);
}

void check_matrix(const Tensor& t, std::int64_t rows, std::int64_t columns) {
  CHECK_EQ(t.rank(), 2);
  CHECK_EQ(t.size(0), rows);
  CHECK_EQ(t.size(1), columns);
  check_rows(t);
}

void check_vector(const Tensor& t, std::int64_t n) {
  CHECK_EQ(t.rank(), 1);
  CHECK_EQ(t.size(0), n);
  check_rows(t);
}

const float* read_floats(const Tensor& t, std::int64_t offset, std::int64_t n, float* room) {
  if (t.dtype == DType::f32) return t.as<float>() + offset;
  with_float_type(t.dtype, [&](auto zero) { widen(t.as<decltype(zero)>() + offset, n, room); });
  return room;
}

const float* read_vector(const Tensor& t, int slot) {
  return t ? read_floats(t, 0, t.size(0), scratch(slot, t.size(0))) : nullptr;
}

void write_floats(const Tensor& t, std::int64_t offset, std::int64_t n, const float* values) {
  with_float_type(t.dtype, [&](auto zero) { narrow(values, n, t.as<decltype(zero)>() + offset); });
}

}  // namespace h3::cpu
