#include "kernels/rows.h"

#include "kernels/launch.h"

namespace h3::kernels {

namespace {

template <typename Unit>
struct Move {
  ByteRows x, y;
  const std::int32_t* index;
  unsigned units;  // a row
  __device__ void operator()(std::int64_t i) const {
    const unsigned row = static_cast<unsigned>(i) / units, unit = static_cast<unsigned>(i) - row * units;
    const std::int64_t from = index ? index[row] : static_cast<std::int64_t>(row);
    const char* source = static_cast<const char*>(x.data) + from * x.stride;
    char* target = static_cast<char*>(y.data) + row * y.stride;
    reinterpret_cast<Unit*>(target)[unit] = reinterpret_cast<const Unit*>(source)[unit];
  }
};

template <typename Unit>
cudaError_t move_units(const ByteRows& x, const std::int32_t* index, std::int64_t rows, std::int64_t bytes,
                       const ByteRows& y, cudaStream_t stream) {
  const std::int64_t units = bytes / static_cast<std::int64_t>(sizeof(Unit));
  if (rows * units > 0xffffffffLL) return cudaErrorInvalidValue;
  return for_indices(rows * units, Move<Unit>{x, y, index, static_cast<unsigned>(units)}, stream);
}

}  // namespace

cudaError_t move_rows(const ByteRows& x, const std::int32_t* index, std::int64_t rows, std::int64_t bytes,
                      const ByteRows& y, cudaStream_t stream) {
  if (rows == 0 || bytes == 0) return cudaSuccess;
  const auto odd = reinterpret_cast<std::uintptr_t>(x.data) | reinterpret_cast<std::uintptr_t>(y.data) |
                   static_cast<std::uintptr_t>(x.stride) | static_cast<std::uintptr_t>(y.stride) |
                   static_cast<std::uintptr_t>(bytes);
  if (odd % 16 == 0) return move_units<uint4>(x, index, rows, bytes, y, stream);
  if (odd % 4 == 0) return move_units<std::uint32_t>(x, index, rows, bytes, y, stream);
  if (odd % 2 == 0) return move_units<std::uint16_t>(x, index, rows, bytes, y, stream);
  return move_units<std::uint8_t>(x, index, rows, bytes, y, stream);
}

}  // namespace h3::kernels
