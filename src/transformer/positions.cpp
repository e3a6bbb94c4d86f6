#include "transformer/positions.h"

#include <cmath>
#include <span>

#include "base/error.h"

namespace h3 {

static constexpr double kFrame = 5.0 / 3.0;  // of one pixel frame
static constexpr double kScale = 32;         // of the spatial axes

// Latent frame k holds 1, 4, 4, 4, 4 pixel frames, and again.
static double span_of(std::int64_t k) {
  return kFrame * (k % 5 == 0 ? 1.0 : 4.0);
}

std::vector<double> spatial_axis(std::int64_t size, std::int64_t other) {
  H3_CHECK(size > 0 && other > 0 && size % 2 == 0 && other % 2 == 0,
           fmt::format("latent sizes {} and {}", size, other));
  const std::int64_t n = size / 2;
  const double ratio = static_cast<double>(size) / std::sqrt(static_cast<double>(size * other));
  const double left = (1.0 - ratio) / 2.0;
  const double right = left + ratio;
  const double step = (right - left) / static_cast<double>(n);
  std::vector<double> axis;
  for (std::int64_t i = 0; i < n; ++i) axis.push_back((static_cast<double>(i) * step + left) * kScale);
  return axis;
}

std::vector<double> temporal_axis(std::int64_t frames, double origin) {
  std::vector<double> axis;
  double before = 0;
  for (std::int64_t k = 0; k < frames; ++k) {
    axis.push_back(origin + before);
    before += span_of(k);
  }
  return axis;
}

double temporal_length(std::int64_t frames) {
  double sum = 0;
  for (std::int64_t k = 0; k < frames; ++k) sum += span_of(k);
  return sum;
}

// Sums as numpy does: halves above 128 values, eight running sums below.
static double pairwise_sum(std::span<const double> x) {
  if (x.size() < 8) {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum;
  }
  if (x.size() > 128) {
    const std::size_t half = x.size() / 2 - x.size() / 2 % 8;
    return pairwise_sum(x.first(half)) + pairwise_sum(x.subspan(half));
  }
  std::array<double, 8> r{};
  const std::size_t whole = x.size() - x.size() % 8;
  for (std::size_t i = 0; i < whole; ++i) r[i % 8] += x[i];
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (const double v : x.subspan(whole)) sum += v;
  return sum;
}

double last_frame_time(std::int64_t frames, double origin) {
  std::vector<double> spans;
  for (std::int64_t k = 0; k < frames; ++k) spans.push_back(span_of(k));
  return (origin + pairwise_sum(spans)) - kFrame;
}

double frame_time(std::int64_t frame, std::int64_t frames, double origin) {
  const std::int64_t pixel_frames = (frames - 2) / 5 * 17 + 5;
  return origin + kFrame * static_cast<double>(frame < 0 ? frame + pixel_frames : frame);
}

}  // namespace h3
