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

template <typename Unit>
struct MovePlanes {
  BytePlanes x, y;
  unsigned rows, units;  // of a plane, of a row
  __device__ void operator()(std::int64_t i) const {
    const unsigned line = static_cast<unsigned>(i) / units, unit = static_cast<unsigned>(i) - line * units;
    const unsigned plane = line / rows, row = line - plane * rows;
    const char* source = static_cast<const char*>(x.data) + plane * x.plane_stride + row * x.row_stride;
    char* target = static_cast<char*>(y.data) + plane * y.plane_stride + row * y.row_stride;
    reinterpret_cast<Unit*>(target)[unit] = reinterpret_cast<const Unit*>(source)[unit];
  }
};

template <typename Unit>
cudaError_t move_plane_units(const BytePlanes& x, std::int64_t planes, std::int64_t rows, std::int64_t bytes,
                             const BytePlanes& y, cudaStream_t stream) {
  const std::int64_t units = bytes / static_cast<std::int64_t>(sizeof(Unit));
  if (planes * rows * units > 0xffffffffLL) return cudaErrorInvalidValue;
  return for_indices(planes * rows * units,
                     MovePlanes<Unit>{x, y, static_cast<unsigned>(rows), static_cast<unsigned>(units)}, stream);
}

}  // namespace

cudaError_t move_planes(const BytePlanes& x, std::int64_t planes, std::int64_t rows, std::int64_t bytes,
                        const BytePlanes& y, cudaStream_t stream) {
  if (planes == 0 || rows == 0 || bytes == 0) return cudaSuccess;
  std::uintptr_t odd = static_cast<std::uintptr_t>(bytes);
  for (const BytePlanes& t : {x, y})
    odd |= reinterpret_cast<std::uintptr_t>(t.data) | static_cast<std::uintptr_t>(t.plane_stride) |
           static_cast<std::uintptr_t>(t.row_stride);
  if (odd % 16 == 0) return move_plane_units<uint4>(x, planes, rows, bytes, y, stream);
  if (odd % 4 == 0) return move_plane_units<std::uint32_t>(x, planes, rows, bytes, y, stream);
  if (odd % 2 == 0) return move_plane_units<std::uint16_t>(x, planes, rows, bytes, y, stream);
  return move_plane_units<std::uint8_t>(x, planes, rows, bytes, y, stream);
}

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
