#include "kernels/convolution.h"

#include "kernels/tile_product.cuh"

namespace h3::kernels {

namespace {

__device__ float with_bias(float sum, const float* bias, std::int64_t channel) {
  return bias ? sum + bias[channel] : sum;
}

class Conv3dProblem {
 public:
  Conv3dProblem(const View4& x, const Conv3d& c, const View4& y)
      : x_(x),
        y_(y),
        conv_(c),
        first_tap_t_(static_cast<int>(c.kt > x.size[1] ? c.kt - x.size[1] : 0)),
        frame_taps_(c.kh * c.kw),
        taps_t_(c.kt - first_tap_t_),
        taps_w_(c.kw),
        plane_(y.size[2] * y.size[3]),
        width_(y.size[3]) {}

  struct Tap {
    std::int64_t weight, x;
    int frame;
  };
  using Row = const float*;
  struct Column {
    const float* at;  // the first tap, which may lie before x
    int frame;        // its index
  };

  __host__ __device__ std::int64_t rows() const { return y_.size[0]; }
  __host__ __device__ std::int64_t columns() const { return y_.size[1] * y_.size[2] * y_.size[3]; }
  __host__ __device__ int depth() const {
    return static_cast<int>(x_.size[0] * (conv_.kt - first_tap_t_) * conv_.kh * conv_.kw);
  }
  __device__ void select(int) {}

  __device__ Column column(std::int64_t j) const {
    const Pixel p = pixel(j);
    const int frame = static_cast<int>(p.t * conv_.stride_t - (conv_.kt - 1));
    return {static_cast<const float*>(x_.data) + frame * x_.stride[1] + p.h * conv_.stride_h * x_.stride[2] +
                p.w * conv_.stride_w * x_.stride[3],
            frame};
  }
  // Taps that reach only the zero frames, whatever the output frame, are left out: they add zeros.
  __device__ Tap tap(int k) const {
    const int group = frame_taps_.quotient(k), channel = taps_t_.quotient(group);
    const int place = frame_taps_.rest(k, group), t = first_tap_t_ + taps_t_.rest(group, channel);
    const int h = taps_w_.quotient(place), w = taps_w_.rest(place, h);
    return {(channel * conv_.kt + t) * conv_.kh * conv_.kw + place,
            channel * x_.stride[0] + t * x_.stride[1] + h * x_.stride[2] + w * x_.stride[3], t};
  }
  __device__ Row row(std::int64_t i) const { return conv_.weight + i * x_.size[0] * conv_.kt * conv_.kh * conv_.kw; }
  __device__ float a(Row row, const Tap& tap) const { return row[tap.weight]; }
  __device__ float b(const Column& column, const Tap& tap) const {
    return column.frame + tap.frame < 0 ? 0.0f : column.at[tap.x];
  }
  __device__ void store(std::int64_t i, std::int64_t j, float sum) const {
    const Pixel p = pixel(j);
    static_cast<float*>(y_.data)[i * y_.stride[0] + p.t * y_.stride[1] + p.h * y_.stride[2] + p.w * y_.stride[3]] =
        with_bias(sum, conv_.bias, i);
  }

 private:
  struct Pixel {
    std::int64_t t, h, w;
  };
  __device__ Pixel pixel(std::int64_t j) const {
    const int index = static_cast<int>(j), t = plane_.quotient(index), rest = plane_.rest(index, t);
    const int h = width_.quotient(rest);
    return {t, h, width_.rest(rest, h)};
  }

  View4 x_, y_;
  Conv3d conv_;
  int first_tap_t_;
  Divisor frame_taps_, taps_t_, taps_w_, plane_, width_;
};

// Output positions of all batch items side by side.
class Conv1dProblem {
 public:
  Conv1dProblem(const Signal& x, const Conv1d& c, const Signal& y)
      : x_(x), y_(y), conv_(c), taps_(c.taps), length_(y.length) {}

  struct Tap {
    int weight;
    std::int64_t x, shift;
  };
  using Row = const float*;
  struct Column {
    const float* signal;
    std::int64_t first;  // input position of the first tap
  };

  __host__ __device__ std::int64_t rows() const { return y_.channels; }
  __host__ __device__ std::int64_t columns() const { return y_.batch * y_.length; }
  __host__ __device__ int depth() const { return static_cast<int>(x_.channels * conv_.taps); }
  __device__ void select(int) {}

  __device__ Column column(std::int64_t j) const {
    const int item = length_.quotient(static_cast<int>(j));
    return {x_.data + item * x_.batch_stride, length_.rest(static_cast<int>(j), item) * conv_.stride - conv_.padding};
  }
  __device__ Tap tap(int k) const {
    const int channel = taps_.quotient(k);
    return {k, channel * x_.channel_stride, taps_.rest(k, channel) * conv_.dilation};
  }
  __device__ Row row(std::int64_t i) const { return conv_.weight + i * depth(); }
  __device__ float a(Row row, const Tap& tap) const { return row[tap.weight]; }
  __device__ float b(const Column& column, const Tap& tap) const {
    const std::int64_t at = column.first + tap.shift;
    return at >= 0 && at < x_.length ? column.signal[tap.x + at] : 0.0f;
  }
  __device__ void store(std::int64_t i, std::int64_t j, float sum) const {
    const int item = length_.quotient(static_cast<int>(j));
    y_.data[item * y_.batch_stride + i * y_.channel_stride + length_.rest(static_cast<int>(j), item)] =
        with_bias(sum, conv_.bias, i);
  }

 private:
  Signal x_, y_;
  Conv1d conv_;
  Divisor taps_, length_;
};

// Output positions of one phase (o mod stride) meet every stride-th tap: each phase is a plain convolution.
class TransposedProblem {
 public:
  TransposedProblem(const Signal& x, const Conv1d& c, const Signal& y)
      : x_(x),
        y_(y),
        conv_(c),
        each_((y.length + c.stride - 1) / c.stride),
        taps_each_((c.taps + c.stride - 1) / c.stride),
        taps_(taps_each_),
        length_(each_) {}

  struct Tap {
    std::int64_t weight, x;  // weight below zero: the phase has one tap less
    int back;
  };
  using Row = const float*;
  struct Column {
    const float* signal;
    std::int64_t newest;  // input position of the first tap
  };

  __host__ __device__ std::int64_t rows() const { return y_.channels; }
  __host__ __device__ std::int64_t columns() const { return y_.batch * each_; }
  __host__ __device__ int depth() const { return static_cast<int>(x_.channels * taps_each_); }
  __device__ void select(int phase) {
    phase_ = phase;
    first_tap_ = (phase + conv_.padding) % conv_.stride;
  }

  __device__ Column column(std::int64_t j) const {
    const int item = length_.quotient(static_cast<int>(j));
    const std::int64_t o = length_.rest(static_cast<int>(j), item) * conv_.stride + phase_;
    return {x_.data + item * x_.batch_stride, (o + conv_.padding - first_tap_) / conv_.stride};
  }
  __device__ Tap tap(int k) const {
    const int channel = taps_.quotient(k), step = taps_.rest(k, channel);
    const std::int64_t place = first_tap_ + step * conv_.stride;
    return {place < conv_.taps ? channel * y_.channels * conv_.taps + place : -1, channel * x_.channel_stride, step};
  }
  __device__ Row row(std::int64_t i) const { return conv_.weight + i * conv_.taps; }
  __device__ float a(Row row, const Tap& tap) const { return tap.weight >= 0 ? row[tap.weight] : 0.0f; }
  __device__ float b(const Column& column, const Tap& tap) const {
    const std::int64_t at = column.newest - tap.back;
    return tap.weight >= 0 && at >= 0 && at < x_.length ? column.signal[tap.x + at] : 0.0f;
  }
  __device__ void store(std::int64_t i, std::int64_t j, float sum) const {
    const int item = length_.quotient(static_cast<int>(j));
    const std::int64_t o = length_.rest(static_cast<int>(j), item) * conv_.stride + phase_;
    if (o < y_.length) y_.data[item * y_.batch_stride + i * y_.channel_stride + o] = with_bias(sum, conv_.bias, i);
  }

 private:
  Signal x_, y_;
  Conv1d conv_;
  std::int64_t each_, taps_each_;  // output positions and taps of a phase, at most
  std::int64_t phase_ = 0, first_tap_ = 0;
  Divisor taps_, length_;
};

// Indices into rows, columns and depth are 31 bits wide.
bool too_large(std::int64_t columns, std::int64_t depth) {
  return columns > 0x7fffffff || depth > 0x7fffffff;
}

}  // namespace

cudaError_t conv3d_causal(const View4& x, const Conv3d& conv, const View4& y, cudaStream_t stream) {
  if (x.type != Element::f32 || y.type != Element::f32) return cudaErrorInvalidValue;
  if (y.size[0] * y.size[1] * y.size[2] * y.size[3] == 0) return cudaSuccess;
  if (too_large(y.size[1] * y.size[2] * y.size[3], x.size[0] * conv.kt * conv.kh * conv.kw))
    return cudaErrorInvalidValue;
  return tile_product(Conv3dProblem(x, conv, y), 1, stream);
}

cudaError_t conv1d(const Signal& x, const Conv1d& conv, const Signal& y, cudaStream_t stream) {
  if (y.batch * y.channels * y.length == 0) return cudaSuccess;
  if (too_large(y.batch * y.length, x.channels * conv.taps)) return cudaErrorInvalidValue;
  return tile_product(Conv1dProblem(x, conv, y), 1, stream);
}

cudaError_t conv1d_transposed(const Signal& x, const Conv1d& conv, const Signal& y, cudaStream_t stream) {
  if (y.batch * y.channels * y.length == 0) return cudaSuccess;
  if (too_large(y.batch * y.length, x.channels * (conv.taps + conv.stride))) return cudaErrorInvalidValue;
  return tile_product(TransposedProblem(x, conv, y), static_cast<int>(conv.stride), stream);
}

}  // namespace h3::kernels
