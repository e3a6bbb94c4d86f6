#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/gathered_product.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

using Offsets = std::vector<std::int64_t>;

// What all convolutions ask of their tensors; channels are axis `axis` of x and y.
void check_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, int axis,
                       std::int64_t in, std::int64_t out) {
  CHECK_EQ(x.rank(), y.rank());
  for (const Tensor* t : {&x, &weight, &y}) {
    CHECK_EQ(name_of(t->dtype), name_of(DType::f32));
    check_rows(*t);
  }
  H3_CHECK(weight.contiguous(), "convolution weights are contiguous");
  CHECK_EQ(x.size(axis), in);
  CHECK_EQ(y.size(axis), out);
  if (bias) check_vector(bias, out);
}

void check_conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dShape& shape, const Tensor& y,
                  std::int64_t in, std::int64_t out, std::int64_t results) {
  CHECK_EQ(x.rank(), 3);
  check_convolution(x, weight, bias, y, 1, in, out);
  CHECK_GE(shape.stride, 1);
  CHECK_GE(shape.dilation, 1);
  CHECK_GE(shape.padding, 0);
  CHECK_EQ(y.size(0), x.size(0));
  CHECK_EQ(y.size(2), results);
}

// The rows of x, all channels of all items, with `margin` zeros on both sides of each.
std::vector<float> padded_rows(const Tensor& x, std::int64_t margin) {
  const std::int64_t rows = row_count(x), length = x.size(-1), wide = length + 2 * margin;
  std::vector<float> padded(static_cast<std::size_t>(rows * wide), 0.0f);
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(padded.data() + r * wide + margin, x.as<float>() + row_offset(x, r),
                static_cast<std::size_t>(length) * sizeof(float));
  return padded;
}

void run_parallel(const GatheredProduct& product) {
  const auto positions = static_cast<std::int64_t>(product.positions.size());
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t p = 0; p < positions; p += kPositions)
    gathered_product(product, p, std::min(p + kPositions, positions));
}

// [out, in, kt, kh * kw] -> [out, kt, in, kh * kw]: taps of one frame together, so that those on the zero frames
// before x can be left out.
std::vector<float> weights_by_frame(const Tensor& weight) {
  const std::int64_t out = weight.size(0), in = weight.size(1), kt = weight.size(2);
  const std::int64_t area = weight.size(3) * weight.size(4);
  std::vector<float> packed(static_cast<std::size_t>(out * in * kt * area));
  float* to = packed.data();
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t t = 0; t < kt; ++t)
      for (std::int64_t i = 0; i < in; ++i, to += area)
        std::memcpy(to, weight.as<float>() + ((o * in + i) * kt + t) * area,
                    static_cast<std::size_t>(area) * sizeof(float));
  return packed;
}

// Taps in that order, relative to the frame under the last tap.
Offsets taps_by_frame(const Tensor& x, const Tensor& weight) {
  Offsets taps;
  for (std::int64_t t = 1 - weight.size(2); t <= 0; ++t)
    for (std::int64_t i = 0; i < weight.size(1); ++i)
      for (std::int64_t r = 0; r < weight.size(3); ++r)
        for (std::int64_t c = 0; c < weight.size(4); ++c)
          taps.push_back(i * x.stride(0) + t * x.stride(1) + r * x.stride(2) + c);
  return taps;
}

// [in, out, k] -> [out, in, taps] for the taps phase, phase + stride, ...
std::vector<float> weights_of_phase(const Tensor& weight, std::int64_t phase, std::int64_t stride) {
  const std::int64_t in = weight.size(0), out = weight.size(1), k = weight.size(2);
  std::vector<float> packed;
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t tap = phase; tap < k; tap += stride)
        packed.push_back(weight.as<float>()[(i * out + o) * k + tap]);
  return packed;
}

}  // namespace

void CpuOperators::conv3d_causal(Queue&, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                 const Conv3dShape& shape, const Tensor& y) {
  CHECK_EQ(x.rank(), 4);
  CHECK_EQ(weight.rank(), 5);
  const std::int64_t out = weight.size(0), kt = weight.size(2);
  check_convolution(x, weight, bias, y, 0, weight.size(1), out);
  CHECK_LE(weight.size(3), x.size(2));
  CHECK_LE(weight.size(4), x.size(3));
  CHECK_EQ(y.size(1), (x.size(1) - 1) / shape.stride_t + 1);
  CHECK_EQ(y.size(2), (x.size(2) - weight.size(3)) / shape.stride_h + 1);
  CHECK_EQ(y.size(3), (x.size(3) - weight.size(4)) / shape.stride_w + 1);
  H3_CHECK(y.at(0).at(0).contiguous(), "the frames of a convolution's result are contiguous");

  const float* b = read_vector(bias, 4);
  const std::vector<float> packed = weights_by_frame(weight);
  const Offsets taps = taps_by_frame(x, weight);
  Offsets positions;
  for (std::int64_t r = 0; r < y.size(2); ++r)
    for (std::int64_t c = 0; c < y.size(3); ++c)
      positions.push_back(r * shape.stride_h * x.stride(2) + c * shape.stride_w);
  const auto area = static_cast<std::int64_t>(positions.size()), all_taps = static_cast<std::int64_t>(taps.size());
  const std::int64_t groups = (area + kPositions - 1) / kPositions;
#pragma omp parallel for schedule(dynamic) collapse(2)
  for (std::int64_t t = 0; t < y.size(1); ++t)
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t last = t * shape.stride_t;  // frame of x under the last tap
      const std::int64_t absent = std::max<std::int64_t>(kt - 1 - last, 0) * (all_taps / kt);
      const GatheredProduct product{.weight = packed.data() + absent,
                                    .weight_stride = all_taps,
                                    .outputs = out,
                                    .bias = b,
                                    .source = x.as<float>() + last * x.stride(1),
                                    .taps = std::span(taps).subspan(static_cast<std::size_t>(absent)),
                                    .positions = positions,
                                    .y = y.as<float>() + t * y.stride(1),
                                    .y_stride = y.stride(0),
                                    .y_step = 1};
      gathered_product(product, g * kPositions, std::min((g + 1) * kPositions, area));
    }
}

void CpuOperators::conv1d(Queue&, const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dShape& shape,
                          const Tensor& y) {
  CHECK_EQ(weight.rank(), 3);
  const std::int64_t out = weight.size(0), in = weight.size(1), k = weight.size(2);
  const std::int64_t wide = x.size(-1) + 2 * shape.padding, reach = (k - 1) * shape.dilation + 1;
  CHECK_LE(reach, wide);
  check_conv1d(x, weight, bias, shape, y, in, out, (wide - reach) / shape.stride + 1);

  const float* b = read_vector(bias, 4);
  const std::vector<float> padded = padded_rows(x, shape.padding);
  Offsets taps, positions;
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t t = 0; t < k; ++t) taps.push_back(i * wide + t * shape.dilation);
  for (std::int64_t p = 0; p < y.size(2); ++p) positions.push_back(p * shape.stride);
  for (std::int64_t item = 0; item < x.size(0); ++item)
    run_parallel({.weight = weight.as<float>(),
                  .weight_stride = in * k,
                  .outputs = out,
                  .bias = b,
                  .source = padded.data() + item * in * wide,
                  .taps = taps,
                  .positions = positions,
                  .y = y.as<float>() + item * y.stride(0),
                  .y_stride = y.stride(1),
                  .y_step = 1});
}

// Output t gets input s through tap k where s * stride - padding + k = t. So outputs of one phase, (t + padding) mod
// stride, see the same taps k = phase, phase + stride, ..., each one input further back: an ordinary convolution.
void CpuOperators::conv1d_transposed(Queue&, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                     const Conv1dShape& shape, const Tensor& y) {
  CHECK_EQ(weight.rank(), 3);
  const std::int64_t in = weight.size(0), out = weight.size(1), k = weight.size(2), stride = shape.stride;
  const std::int64_t results = (x.size(-1) - 1) * stride - 2 * shape.padding + k;
  check_conv1d(x, weight, bias, shape, y, in, out, results);
  CHECK_EQ(shape.dilation, 1);

  const float* b = read_vector(bias, 4);
  const std::int64_t margin = (k + stride - 1) / stride, wide = x.size(2) + 2 * margin;
  const std::vector<float> padded = padded_rows(x, margin);
  for (std::int64_t first = 0; first < std::min(stride, results); ++first) {
    const std::int64_t phase = (first + shape.padding) % stride, newest = (first + shape.padding) / stride;
    const std::vector<float> packed = weights_of_phase(weight, phase, stride);
    const auto depth = static_cast<std::int64_t>(packed.size()) / (in * out);
    Offsets taps, positions;
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t q = 0; q < depth; ++q) taps.push_back(i * wide + margin - q);
    for (std::int64_t t = first; t < results; t += stride) positions.push_back(newest + t / stride);
    for (std::int64_t item = 0; item < x.size(0); ++item)
      run_parallel({.weight = packed.data(),
                    .weight_stride = in * depth,
                    .outputs = out,
                    .bias = b,
                    .source = padded.data() + item * in * wide,
                    .taps = taps,
                    .positions = positions,
                    .y = y.as<float>() + item * y.stride(0) + first,
                    .y_stride = y.stride(1),
                    .y_step = stride});
  }
}

}  // namespace h3
