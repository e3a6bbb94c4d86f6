#include "kernels/video.h"

#include <algorithm>

#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/convolution.h"

namespace h3 {

using namespace cuda;

void CudaOperators::conv3d_causal(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                  const Conv3dShape& shape, const Tensor& y) {
  const NamedRange range("conv3d_causal");
  CHECK_EQ(x.rank(), 4);
  CHECK_EQ(y.rank(), 4);
  const kernels::View4 from = view4(x), to = view4(y);
  CHECK_EQ(weight.rank(), 5);
  CHECK_EQ(weight.size(0), y.size(0));
  CHECK_EQ(weight.size(1), x.size(0));
  for (const Tensor* t : {&x, &y, &weight}) check_dtype(*t, DType::f32);
  check_memory(weight);
  H3_CHECK(weight.contiguous(), "convolution weights are contiguous");
  const kernels::Conv3d conv{weight.as<const float>(), floats_or_none(bias, y.size(0)),
                             weight.size(2),           weight.size(3),
                             weight.size(4),           shape.stride_t,
                             shape.stride_h,           shape.stride_w};
  CHECK_EQ(y.size(1), (x.size(1) - 1) / conv.stride_t + 1);
  CHECK_EQ(y.size(2), (x.size(2) - conv.kh) / conv.stride_h + 1);
  CHECK_EQ(y.size(3), (x.size(3) - conv.kw) / conv.stride_w + 1);
  H3_CUDA(kernels::conv3d_causal(from, conv, to, cuda_queue(q).stream()));
}

void CudaOperators::pad_reflect(Queue& q, const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& y) {
  const NamedRange range("pad_reflect");
  CHECK_EQ(x.rank(), 4);
  CHECK_EQ(y.rank(), 4);
  const kernels::View4 from = view4(x), to = view4(y);
  check_dtype(y, x.dtype);
  CHECK_EQ(x.size(0), y.size(0));
  CHECK_EQ(x.size(1), y.size(1));
  for (const auto& [before, axis] : {std::pair{top, 2}, std::pair{left, 3}})
    for (const std::int64_t pad : {before, y.size(axis) - x.size(axis) - before}) {
      CHECK_LE(0, pad);
      CHECK_LT(pad, x.size(axis));
    }
  H3_CUDA(kernels::pad_reflect(from, top, left, to, cuda_queue(q).stream()));
}

void CudaOperators::unpatchify(Queue& q, const Tensor& tokens, const Patch& patch, const Tensor& pixels) {
  const NamedRange range("unpatchify");
  CHECK_EQ(pixels.rank(), 4);
  const kernels::View4 to = view4(pixels);
  CHECK_EQ(pixels.size(1), patch.t * patch.patch_t);
  CHECK_EQ(pixels.size(2), patch.h * patch.patch_h);
  CHECK_EQ(pixels.size(3), patch.w * patch.patch_w);
  check_dtype(tokens, pixels.dtype);
  const kernels::Matrix from =
      matrix(tokens, patch.t * patch.h * patch.w, pixels.size(0) * patch.patch_t * patch.patch_h * patch.patch_w);
  const kernels::PatchGrid grid{patch.t, patch.h, patch.w, patch.patch_t, patch.patch_h, patch.patch_w};
  H3_CUDA(kernels::unpatchify(from, grid, to, cuda_queue(q).stream()));
}

void CudaOperators::cross_fade(Queue& q, const Tensor& older, int axis, const Tensor& y) {
  const NamedRange range("cross_fade");
  CHECK_EQ(y.rank(), 3);
  check_same_shape(older, y);
  check_dtype(older, y.dtype);
  CHECK_LE(0, axis);
  CHECK_LT(axis, 3);
  H3_CUDA(kernels::cross_fade(view4(older), axis + 1, view4(y), cuda_queue(q).stream()));
}

void CudaOperators::frames_to_u8(Queue& q, const Tensor& x, std::span<const float, 3> mean,
                                 std::span<const float, 3> std, bool truncate, const Tensor& y, const Tensor& nans) {
  const NamedRange range("frames_to_u8");
  CHECK_EQ(x.rank(), 4);
  check_dtype(x, DType::f32);
  const kernels::View4 from = view4(x);
  CHECK_EQ(x.size(0), 3);
  CHECK_EQ(y.rank(), 4);
  CHECK_EQ(y.size(3), 3);
  for (int axis = 0; axis < 3; ++axis) CHECK_EQ(y.size(axis), x.size(axis + 1));
  check_dtype(y, DType::u8);
  check_rows(y);
  CHECK_EQ(nans.elements(), 1);
  check_rows(nans);
  check_dtype(nans, DType::i32);
  kernels::PixelScale scale{};
  std::copy(mean.begin(), mean.end(), scale.mean);
  std::copy(std.begin(), std.end(), scale.std);
  scale.truncate = truncate;
  const kernels::Frames to{y.as<std::uint8_t>(), y.stride(0), y.stride(1), y.stride(2)};
  H3_CUDA(kernels::frames_to_u8(from, scale, to, nans.as<std::int32_t>(), cuda_queue(q).stream()));
}

}  // namespace h3
