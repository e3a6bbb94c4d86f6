// Kernels of the video decoder and encoder outside their networks' linear layers (spec/vae.md 5, 7, 9-11).
#pragma once

#include "kernels/types.h"

namespace h3::kernels {

// A [n0, n1, n2, n3] view of any strides.
struct View4 {
  void* data = nullptr;
  std::int64_t size[4] = {1, 1, 1, 1};
  std::int64_t stride[4] = {0, 0, 0, 1};
  Element type = Element::f32;
};

// Reflects the last two axes: y[.., i, j] = x[.., reflect(i - top), reflect(j - left)].
cudaError_t pad_reflect(const View4& x, std::int64_t top, std::int64_t left, const View4& y, cudaStream_t stream);

// Tokens of pt x ph x pw pixels a channel, channel slowest.
struct PatchGrid {
  std::int64_t t = 0, h = 0, w = 0;
  std::int64_t patch_t = 0, patch_h = 0, patch_w = 0;
};
// tokens [t*h*w, channels*pt*ph*pw] -> pixels [channels, t*pt, h*ph, w*pw].
cudaError_t unpatchify(const Matrix& tokens, const PatchGrid& grid, const View4& pixels, cudaStream_t stream);

// y[p] = (older[p] * (1 - p/n)) + (y[p] * (p/n)) in place, p along `axis` of size n; weights, products and the sum
// rounded to y's type.
cudaError_t cross_fade(const View4& older, int axis, const View4& y, cudaStream_t stream);

// x [3, frames, h, w] f32 -> RGB bytes [frames, h, w, 3]; adds the number of NaNs to *nans.
struct PixelScale {
  float mean[3], std[3];
  bool truncate;
};
struct Frames {
  std::uint8_t* data = nullptr;
  std::int64_t frame_stride = 0, row_stride = 0, pixel_stride = 3;
};
cudaError_t frames_to_u8(const View4& x, const PixelScale& scale, const Frames& y, std::int32_t* nans,
                         cudaStream_t stream);

}  // namespace h3::kernels
