#include <algorithm>
#include <cmath>

#include "compute/cpu/activation_math.h"
#include "compute/cpu/cpu_operators.h"
#include "compute/cpu/lanes.h"
#include "compute/cpu/rows.h"

namespace h3 {

using namespace cpu;

namespace {

constexpr int kTaps = 12;
constexpr float kEpsilon = 1e-9f;  // spec/vae.md 16, 17

inline F8 snake8(F8 x, float frequency, float scale) {
  return x + scale * sin_squared8(frequency * x);
}

// One channel of the anti-aliased activation, piece by piece. Even and odd samples of the doubled rate lie apart, so
// that both filters run over consecutive values:
//   even[i] = 2 sum_q f[1 + 2q] x[i + 2 - q],  odd[i] = 2 sum_q f[2q] x[i + 3 - q],  q = 0..5
//   o[j] = sum_q f[q] (q odd ? even[j + (q - 5) / 2] : odd[j + (q - 6) / 2])
// Before the first sample stands even[0], after the last odd[length - 1]; x repeats its edges likewise.
class SnakeChannel {
 public:
  SnakeChannel(const float* x, std::int64_t length, const float* filter, float frequency, float scale)
      : x_(x), length_(length), filter_(filter), frequency_(frequency), scale_(scale) {}

  void run(std::int64_t begin, std::int64_t count, float* out) const {
    constexpr std::int64_t kHalo = 3;  // samples of each parity needed on either side
    const std::int64_t first = begin - kHalo, n = count + 2 * kHalo, whole = (n + 7) / 8 * 8;
    float* padded = scratch(0, whole + 6);
    float* even = scratch(1, whole + 8);
    float* odd = scratch(2, whole + 8);
    for (std::int64_t i = 0; i < whole + 6; ++i)
      padded[i] = x_[std::clamp<std::int64_t>(first - 3 + i, 0, length_ - 1)];
    up(padded + 3, whole, 1, 2, even);
    up(padded + 3, whole, 0, 3, odd);
    repeat_edges(first, n, even, odd);
    for (std::int64_t j = 0; j < count; j += 8) {
      F8 sum = splat(0.0f);
      for (int q = 0; q < kTaps; ++q)
        sum += filter_[q] * load8(q % 2 ? even + j + kHalo + (q - 5) / 2 : odd + j + kHalo + (q - 6) / 2);
      store_some(out + j, std::min<std::int64_t>(8, count - j), sum);
    }
  }

 private:
  // One parity of the doubled rate, after the snake.
  void up(const float* x, std::int64_t n, int first_tap, std::int64_t newest, float* y) const {
    for (std::int64_t i = 0; i < n; i += 8) {
      F8 sum = splat(0.0f);
      for (int q = 0; q < kTaps / 2; ++q) sum += filter_[first_tap + 2 * q] * load8(x + i + newest - q);
      store8(y + i, snake8(2.0f * sum, frequency_, scale_));
    }
  }

  void repeat_edges(std::int64_t first, std::int64_t n, float* even, float* odd) const {
    for (std::int64_t i = 0; i < n && first + i < 0; ++i) even[i] = odd[i] = even[-first];
    for (std::int64_t i = std::max<std::int64_t>(length_ - first, 0); i < n; ++i)
      even[i] = odd[i] = odd[length_ - 1 - first];
  }

  const float* x_;
  std::int64_t length_;
  const float* filter_;
  float frequency_, scale_;
};

void check_channels(const Tensor& x, const Tensor& y) {
  CHECK_EQ(x.rank(), 3);
  H3_CHECK(x.shape == y.shape, x.shape.text() + " against " + y.shape.text());
  H3_CHECK(x.dtype == DType::f32 && y.dtype == DType::f32, "audio is float32");
  check_rows(x);
  check_rows(y);
}

// Calls f(channel, x, begin, count, y) in parallel over pieces of every channel.
template <typename F>
void for_each_channel_piece(const Tensor& x, const Tensor& y, F f) {
  constexpr std::int64_t kPiece = 2048;
  const std::int64_t channels = x.size(1), length = x.size(2), pieces = (length + kPiece - 1) / kPiece;
#pragma omp parallel for schedule(static) collapse(2)
  for (std::int64_t row = 0; row < x.size(0) * channels; ++row)
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = piece * kPiece;
      f(row % channels, x.as<float>() + row_offset(x, row), begin, std::min(kPiece, length - begin),
        y.as<float>() + row_offset(y, row) + begin);
    }
}

}  // namespace

void CpuOperators::snake_beta(Queue&, const Tensor& x, const Tensor& alpha, const Tensor& beta, const Tensor& filter,
                              const Tensor& y) {
  check_channels(x, y);
  check_vector(alpha, x.size(1));
  check_vector(beta, x.size(1));
  check_vector(filter, kTaps);
  for (const Tensor* t : {&alpha, &beta, &filter}) CHECK_EQ(name_of(t->dtype), name_of(DType::f32));
  for_each_channel_piece(x, y, [&](std::int64_t c, const float* in, std::int64_t begin, std::int64_t n, float* out) {
    const float frequency = std::exp(alpha.as<float>()[c]);
    const float scale = 1.0f / (std::exp(beta.as<float>()[c]) + kEpsilon);
    SnakeChannel(in, x.size(2), filter.as<float>(), frequency, scale).run(begin, n, out);
  });
}

void CpuOperators::snake(Queue&, const Tensor& x, const Tensor& alpha, const Tensor& y) {
  check_channels(x, y);
  check_vector(alpha, x.size(1));
  CHECK_EQ(name_of(alpha.dtype), name_of(DType::f32));
  for_each_channel_piece(x, y, [&](std::int64_t c, const float* in, std::int64_t begin, std::int64_t n, float* out) {
    const float a = alpha.as<float>()[c];
    const float scale = 1.0f / (a + kEpsilon);
    map_row(in + begin, n, out, [a, scale](F8 v) { return snake8(v, a, scale); });
  });
}

}  // namespace h3
