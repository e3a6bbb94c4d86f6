#include "media/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "media/frame_source.h"

namespace h3 {

std::int64_t Comparison::equal_frames() const {
  return std::count_if(frames.begin(), frames.end(), [](const PictureDifference& d) { return d.equal; });
}

int Comparison::largest() const {
  int largest = 0;
  for (const PictureDifference& d : frames) largest = std::max(largest, d.largest);
  return largest;
}

double Comparison::psnr() const {
  double sum = 0;
  for (const PictureDifference& d : frames) sum += d.mean_square_error;
  return psnr_of(sum / static_cast<double>(std::max<std::size_t>(1, frames.size())));
}

double Comparison::ssim() const {
  double sum = 0;
  for (const PictureDifference& d : frames) sum += d.ssim;
  return frames.empty() ? 1 : sum / static_cast<double>(frames.size());
}

bool Comparison::equal() const {
  const bool same_sound = sound.equal || (sound.length_a == 0 && sound.length_b == 0);
  return frames_a == frames_b && equal_frames() == frames_a && same_sound;
}

namespace {

struct Power {
  double signal = 0, noise = 0;
  double snr() const {
    if (noise <= 0) return std::numeric_limits<double>::infinity();
    return 10 * std::log10(signal / noise);
  }
};

}  // namespace

SoundDifference difference_of(const Sound& a, const Sound& b) {
  SoundDifference d;
  d.length_a = a.length();
  d.length_b = b.length();
  d.rate_a = a.rate;
  d.rate_b = b.rate;
  d.channels_a = a.channels;
  d.channels_b = b.channels;
  d.comparable = d.length_a > 0 && d.length_b > 0 && a.rate == b.rate && a.channels == b.channels;
  if (!d.comparable) return d;
  const std::size_t length = std::min(d.length_a, d.length_b);
  Power whole;
  for (int c = 0; c < a.channels; ++c) {
    Power power;
    for (std::size_t i = 0; i < length; ++i) {
      const double x = a.channel(c)[i], e = x - b.channel(c)[i];
      power.signal += x * x;
      power.noise += e * e;
      d.largest = std::max(d.largest, std::abs(e));
    }
    d.channel_snr.push_back(power.snr());
    whole.signal += power.signal;
    whole.noise += power.noise;
  }
  d.snr = whole.snr();
  d.equal = a == b;
  return d;
}

Comparison compare_renders(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto source_a = open_frames(a), source_b = open_frames(b);
  Comparison result;
  Image frame_a, frame_b;
  while (true) {
    const bool more_a = source_a->next(frame_a), more_b = source_b->next(frame_b);
    result.frames_a += more_a ? 1 : 0;
    result.frames_b += more_b ? 1 : 0;
    if (!more_a && !more_b) break;
    if (!more_a || !more_b) continue;
    if (frame_a.width != frame_b.width || frame_a.height != frame_b.height)
      throw UserError(fmt::format("{} and {}", a.string(), b.string()), fmt::format("frame {}", result.frames_a - 1),
                      fmt::format("{}x{} and {}x{}", frame_a.width, frame_a.height, frame_b.width, frame_b.height),
                      "expected frames of one size");
    result.width = frame_a.width;
    result.height = frame_a.height;
    result.frames.push_back(difference_of(frame_a, frame_b));
  }
  result.sound = difference_of(source_a->sound(), source_b->sound());
  return result;
}

}  // namespace h3
