#include "kernels/video.h"

#include "kernels/chunk.cuh"
#include "kernels/launch.h"

namespace h3::kernels {

namespace {

struct Place4 {
  std::int64_t at[4];
};

// Indices fit 32 bits (see for_elements), which makes the divisions cheap.
__device__ Place4 place_of(std::int64_t index, const View4& v) {
  Place4 p;
  auto i = static_cast<unsigned>(index);
#pragma unroll
  for (int axis = 3; axis > 0; --axis) {
    const auto size = static_cast<unsigned>(v.size[axis]);
    const unsigned next = i / size;
    p.at[axis] = i - next * size;
    i = next;
  }
  p.at[0] = i;
  return p;
}

template <typename T>
__device__ T& element(const View4& v, const Place4& p) {
  return static_cast<T*>(
      v.data)[p.at[0] * v.stride[0] + p.at[1] * v.stride[1] + p.at[2] * v.stride[2] + p.at[3] * v.stride[3]];
}

template <typename Body>
cudaError_t for_elements(const View4& v, const Body& body, cudaStream_t stream) {
  const std::int64_t n = v.size[0] * v.size[1] * v.size[2] * v.size[3];
  if (n > 0xffffffffLL) return cudaErrorInvalidValue;
  return for_indices(n, body, stream);
}

// Movers look at bits only: one 2-byte and one 4-byte kernel serve all types.
template <typename F>
cudaError_t with_unit(Element type, F f) {
  return bytes_of(type) == 4 ? f(std::uint32_t{}) : f(std::uint16_t{});
}

__device__ std::int64_t reflect(std::int64_t i, std::int64_t n) {
  if (i < 0) i = -i;
  return i < n ? i : 2 * (n - 1) - i;
}

template <typename Unit>
struct PadReflect {
  View4 x, y;
  std::int64_t top, left;
  __device__ void operator()(std::int64_t i) const {
    const Place4 to = place_of(i, y);
    Place4 from = to;
    from.at[2] = reflect(from.at[2] - top, x.size[2]);
    from.at[3] = reflect(from.at[3] - left, x.size[3]);
    element<Unit>(y, to) = element<Unit>(x, from);
  }
};

struct Split {
  std::int64_t quotient, rest;
  __device__ Split(std::int64_t n, std::int64_t by)
      : quotient(static_cast<unsigned>(n) / static_cast<unsigned>(by)), rest(n - quotient * by) {}
};

template <typename Unit>
struct Unpatchify {
  Matrix tokens;
  PatchGrid grid;
  View4 y;
  __device__ void operator()(std::int64_t i) const {
    const Place4 p = place_of(i, y);
    const Split t(p.at[1], grid.patch_t), h(p.at[2], grid.patch_h), w(p.at[3], grid.patch_w);
    const std::int64_t token = (t.quotient * grid.h + h.quotient) * grid.w + w.quotient;
    const std::int64_t value = ((p.at[0] * grid.patch_t + t.rest) * grid.patch_h + h.rest) * grid.patch_w + w.rest;
    element<Unit>(y, p) = static_cast<const Unit*>(tokens.data)[token * tokens.stride + value];
  }
};

template <typename T>
struct CrossFade {
  View4 older, y;
  int axis;
  __device__ void operator()(std::int64_t i) const {
    const Place4 p = place_of(i, y);
    const float newer = rounded<T>(static_cast<float>(p.at[axis]) / static_cast<float>(y.size[axis]));
    T& value = element<T>(y, p);
    const float faded = rounded<T>(to_float(element<T>(older, p)) * rounded<T>(1.0f - newer));
    value = from_float<T>(faded + rounded<T>(to_float(value) * newer));
  }
};

struct ToU8 {
  View4 x, plane;
  PixelScale scale;
  Frames y;
  std::int32_t* nans;
  __device__ void operator()(std::int64_t pixel) const {
    Place4 p = place_of(pixel, plane);
    std::uint8_t* out = y.data + p.at[1] * y.frame_stride + p.at[2] * y.row_stride + p.at[3] * y.pixel_stride;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      p.at[0] = c;
      const float v = element<const float>(x, p) * scale.std[c] + scale.mean[c];
      if (isnan(v)) atomicAdd(nans, 1);
      const float level = fminf(fmaxf(v, 0.0f), 1.0f) * 255.0f;  // fmaxf turns a NaN into 0
      out[c] = static_cast<std::uint8_t>(scale.truncate ? floorf(level) : rintf(level));
    }
  }
};

}  // namespace

cudaError_t pad_reflect(const View4& x, std::int64_t top, std::int64_t left, const View4& y, cudaStream_t stream) {
  if (x.type != y.type) return cudaErrorInvalidValue;
  return with_unit(y.type, [&](auto unit) {
    return for_elements(y, PadReflect<decltype(unit)>{x, y, top, left}, stream);
  });
}

cudaError_t unpatchify(const Matrix& tokens, const PatchGrid& grid, const View4& pixels, cudaStream_t stream) {
  if (tokens.type != pixels.type) return cudaErrorInvalidValue;
  return with_unit(pixels.type, [&](auto unit) {
    return for_elements(pixels, Unpatchify<decltype(unit)>{tokens, grid, pixels}, stream);
  });
}

cudaError_t cross_fade(const View4& older, int axis, const View4& y, cudaStream_t stream) {
  if (older.type != y.type) return cudaErrorInvalidValue;
  return with_type(y.type, [&](auto zero) {
    return for_elements(y, CrossFade<decltype(zero)>{older, y, axis}, stream);
  });
}

cudaError_t frames_to_u8(const View4& x, const PixelScale& scale, const Frames& y, std::int32_t* nans,
                         cudaStream_t stream) {
  if (x.type != Element::f32) return cudaErrorInvalidValue;
  View4 plane = x;
  plane.size[0] = 1;
  return for_elements(plane, ToU8{x, plane, scale, y, nans}, stream);
}

}  // namespace h3::kernels
