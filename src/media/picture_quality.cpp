#include "media/picture_quality.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/error.h"

namespace h3 {

namespace {

// Sums over a window from which mean, variance and covariance follow.
struct Sums {
  double a = 0, b = 0, aa = 0, bb = 0, ab = 0;

  void add(double x, double y) {
    a += x;
    b += y;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  void add(const Sums& o) {
    a += o.a;
    b += o.b;
    aa += o.aa;
    bb += o.bb;
    ab += o.ab;
  }
  double ssim(double n) const {
    constexpr double c1 = 0.01 * 0.01 * 255 * 255, c2 = 0.03 * 0.03 * 255 * 255;
    const double ma = a / n, mb = b / n;
    const double va = aa / n - ma * ma, vb = bb / n - mb * mb, cov = ab / n - ma * mb;
    return (2 * ma * mb + c1) * (2 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
  }
};

double luma(const std::uint8_t* p) {
  return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2];
}

Sums sums_over(const Image& a, const Image& b, int x0, int y0, int width, int height) {
  Sums sums;
  for (int y = y0; y < y0 + height; ++y)
    for (int x = x0; x < x0 + width; ++x) sums.add(luma(a.pixel(x, y)), luma(b.pixel(x, y)));
  return sums;
}

constexpr int block = 4;  // a window is 2 x 2 blocks

double ssim_of(const Image& a, const Image& b) {
  const int across = a.width / block, down = a.height / block;
  if (across < 2 || down < 2)
    return sums_over(a, b, 0, 0, a.width, a.height).ssim(static_cast<double>(a.width) * a.height);
  std::vector<Sums> blocks;
  for (int y = 0; y < down; ++y)
    for (int x = 0; x < across; ++x) blocks.push_back(sums_over(a, b, x * block, y * block, block, block));
  double total = 0;
  for (int y = 0; y + 1 < down; ++y)
    for (int x = 0; x + 1 < across; ++x) {
      const auto at = [&](int v, int u) -> const Sums& { return blocks[static_cast<std::size_t>(v * across + u)]; };
      Sums window = at(y, x);
      window.add(at(y, x + 1));
      window.add(at(y + 1, x));
      window.add(at(y + 1, x + 1));
      total += window.ssim(4 * block * block);
    }
  return total / (static_cast<double>(across - 1) * (down - 1));
}

}  // namespace

double psnr_of(double mean_square_error) {
  if (mean_square_error <= 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(255.0 * 255.0 / mean_square_error);
}

double PictureDifference::psnr() const {
  return psnr_of(mean_square_error);
}

PictureDifference difference_of(const Image& a, const Image& b) {
  CHECK_EQ(a.width, b.width);
  CHECK_EQ(a.height, b.height);
  PictureDifference result;
  if (a == b) return result;
  std::int64_t squares = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    const int d = std::abs(int{a.rgb[i]} - int{b.rgb[i]});
    result.largest = std::max(result.largest, d);
    squares += d * d;
  }
  result.equal = false;
  result.mean_square_error = static_cast<double>(squares) / static_cast<double>(a.rgb.size());
  result.ssim = ssim_of(a, b);
  return result;
}

}  // namespace h3
