#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "base/error.h"

namespace h3 {
namespace {

constexpr int kLevelBits = 22;  // of fixed-point weights at most, so that sums of 8-bit levels fit 32 bits

// The source pixels that one output pixel sums, and their weights in units of 2^-bits.
struct Taps {
  int first = 0;
  std::vector<std::int32_t> weights;
};
struct Axis {
  std::vector<Taps> taps;  // by output pixel
  int bits = 0;
};

struct RealTaps {
  int first = 0;
  std::vector<double> weights;  // normalised
};

// The taps of all outputs of one axis: filter(x) has the given support at scale 1 and is widened where the axis
// shrinks.
template <typename Filter>
std::vector<RealTaps> real_taps(int in, int out, double support_at_one, Filter filter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double widening = std::max(scale, 1.0), support = support_at_one * widening, inverse = 1.0 / widening;
  std::vector<RealTaps> all(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    RealTaps& taps = all[static_cast<std::size_t>(i)];
    const double center = (i + 0.5) * scale;
    taps.first = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(in, static_cast<int>(center + support + 0.5));
    double sum = 0;
    for (int x = taps.first; x < end; ++x) sum += taps.weights.emplace_back(filter((x - center + 0.5) * inverse));
    if (sum != 0) {
      for (double& w : taps.weights) w /= sum;
    }
  }
  return all;
}

Axis fixed_point(const std::vector<RealTaps>& real, int bits) {
  Axis axis{{}, bits};
  axis.taps.reserve(real.size());
  for (const RealTaps& taps : real) {
    Taps& fixed = axis.taps.emplace_back();
    fixed.first = taps.first;
    for (const double w : taps.weights) {
      const double scaled = w * static_cast<double>(1 << bits);
      fixed.weights.push_back(static_cast<std::int32_t>(scaled + (w < 0 ? -0.5 : 0.5)));
    }
  }
  return axis;
}

double lanczos(double x) {
  const auto sinc = [](double t) { return t == 0 ? 1.0 : std::sin(t * std::numbers::pi) / (t * std::numbers::pi); };
  return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  const double t = std::abs(x);
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return (((t - 5) * t + 8) * t - 4) * a;
  return 0;
}

Axis lanczos_axis(int in, int out) {
  return fixed_point(real_taps(in, out, 3, lanczos), kLevelBits);
}

// PyTorch keeps weights in 16 bits, with as many of them behind the point as the largest weight leaves.
Axis bicubic_axis(int in, int out) {
  const std::vector<RealTaps> real = real_taps(in, out, 2, bicubic);
  double largest = 0;
  for (const RealTaps& taps : real) {
    for (const double w : taps.weights) largest = std::max(largest, w);
  }
  int bits = 0;
  while (bits < kLevelBits && static_cast<int>(0.5 + largest * static_cast<double>(1 << (bits + 1))) < (1 << 15))
    ++bits;
  return fixed_point(real, bits);
}

std::uint8_t level(std::int32_t sum, int bits) {
  return static_cast<std::uint8_t>(std::clamp(sum >> bits, 0, 255));
}

Image filter_columns(const Image& image, const Axis& axis) {
  Image out(static_cast<int>(axis.taps.size()), image.height);
  const std::int32_t half = axis.bits > 0 ? 1 << (axis.bits - 1) : 0;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const Taps& taps = axis.taps[static_cast<std::size_t>(x)];
      const std::uint8_t* from = image.pixel(taps.first, y);
      std::int32_t sum[3] = {half, half, half};
      for (const std::int32_t weight : taps.weights) {
        for (int c = 0; c < 3; ++c) sum[c] += weight * *from++;
      }
      for (int c = 0; c < 3; ++c) out.pixel(x, y)[c] = level(sum[c], axis.bits);
    }
  }
  return out;
}

Image filter_rows(const Image& image, const Axis& axis) {
  Image out(image.width, static_cast<int>(axis.taps.size()));
  const std::int32_t half = axis.bits > 0 ? 1 << (axis.bits - 1) : 0;
  const auto values = static_cast<std::size_t>(image.width) * 3;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < out.height; ++y) {
    const Taps& taps = axis.taps[static_cast<std::size_t>(y)];
    std::vector<std::int32_t> sums(values, half);
    int row = taps.first;
    for (const std::int32_t weight : taps.weights) {
      const std::uint8_t* from = image.pixel(0, row++);
      for (std::size_t i = 0; i < values; ++i) sums[i] += weight * from[i];
    }
    std::uint8_t* to = out.pixel(0, y);
    for (std::size_t i = 0; i < values; ++i) to[i] = level(sums[i], axis.bits);
  }
  return out;
}

enum class FirstPass : std::uint8_t { across, down };

template <typename MakeAxis>
Image resize(const Image& image, int width, int height, MakeAxis make_axis, FirstPass first) {
  H3_CHECK(image.width > 0 && image.height > 0 && width > 0 && height > 0,
           fmt::format("{} x {} to {} x {}", image.width, image.height, width, height));
  const auto across = [&](const Image& in) {
    return width == in.width ? in : filter_columns(in, make_axis(in.width, width));
  };
  const auto down = [&](const Image& in) {
    return height == in.height ? in : filter_rows(in, make_axis(in.height, height));
  };
  return first == FirstPass::across ? down(across(image)) : across(down(image));
}

// Pillow 13 goes down first where that takes away much more; older versions never do.
FirstPass pillow_order(const Image& image, int width, int height) {
  const std::int64_t narrower = image.width - width, lower = image.height - height;
  return lower > 0 && 2 * narrower < lower ? FirstPass::down : FirstPass::across;
}

}  // namespace

Image resize_lanczos(const Image& image, int width, int height) {
  return resize(image, width, height, lanczos_axis, pillow_order(image, width, height));
}

Image resize_bicubic(const Image& image, int width, int height) {
  return resize(image, width, height, bicubic_axis, FirstPass::across);
}

Image cover(const Image& image, int width, int height) {
  if (image.width == width && image.height == height) return image;
  const double w = image.width, h = image.height, scale = std::max(width / w, height / h);
  const int scaled_width = std::max(width, static_cast<int>(std::nearbyint(w * scale)));
  const int scaled_height = std::max(height, static_cast<int>(std::nearbyint(h * scale)));
  const Image scaled = resize_lanczos(image, scaled_width, scaled_height);
  const int left = (scaled_width - width) / 2, top = (scaled_height - height) / 2;
  Image out(width, height);
  for (int y = 0; y < height; ++y) {
    std::copy_n(scaled.pixel(left, top + y), static_cast<std::ptrdiff_t>(width) * 3, out.pixel(0, y));
  }
  return out;
}

}  // namespace h3
