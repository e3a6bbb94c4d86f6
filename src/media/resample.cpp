#include "media/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace h3 {

namespace {

constexpr double zero_crossings = 6;  // of the sinc on either side
constexpr double rolloff = 0.99;

// The taps of one output phase that are not zero.
struct Phase {
  std::int64_t first = 0;  // input sample of the first tap, from the start of the phase's block
  std::vector<float> taps;
};

// The filter of phase p of `outputs` samples made from `inputs`. The phase's shift is a quotient in float32, the rest
// is evaluated in double and rounded once.
Phase phase_of(std::int64_t p, std::int64_t inputs, std::int64_t outputs) {
  const auto o = static_cast<double>(inputs);
  const double base = rolloff * static_cast<double>(std::min(inputs, outputs));
  const double shift = static_cast<float>(-p) / static_cast<float>(outputs);
  const double reach = zero_crossings / base;
  Phase phase;
  phase.first = static_cast<std::int64_t>(std::ceil((-shift - reach) * o));
  const auto last = static_cast<std::int64_t>(std::floor((-shift + reach) * o));
  for (std::int64_t k = phase.first; k <= last; ++k) {
    const double t = std::clamp((shift + static_cast<double>(k) / o) * base, -zero_crossings, zero_crossings);
    const double window = std::cos(t * std::numbers::pi / zero_crossings / 2);
    const double angle = t * std::numbers::pi;
    const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
    phase.taps.push_back(static_cast<float>(sinc * (window * window * (base / o))));
  }
  return phase;
}

float filtered(std::span<const float> in, const Phase& phase, std::int64_t block_start) {
  const std::int64_t start = block_start + phase.first;
  const auto taps = static_cast<std::int64_t>(phase.taps.size()), length = static_cast<std::int64_t>(in.size());
  double sum = 0;  // silence before and after the sound
  for (std::int64_t k = std::max<std::int64_t>(0, -start); k < std::min(taps, length - start); ++k)
    sum += static_cast<double>(phase.taps[static_cast<std::size_t>(k)]) *
           static_cast<double>(in[static_cast<std::size_t>(start + k)]);
  return static_cast<float>(sum);
}

}  // namespace

std::int64_t resampled_length(std::int64_t length, int from, int to) {
  CHECK_LT(0, from);
  CHECK_LT(0, to);
  const std::int64_t common = std::gcd(from, to), inputs = from / common, outputs = to / common;
  return (outputs * length + inputs - 1) / inputs;
}

Sound resampled(const Sound& sound, int rate) {
  if (sound.rate == rate) return sound;
  const std::int64_t common = std::gcd(sound.rate, rate), inputs = sound.rate / common, outputs = rate / common;
  const std::int64_t length = resampled_length(static_cast<std::int64_t>(sound.length()), sound.rate, rate);
  Sound result{rate, sound.channels, std::vector<float>(static_cast<std::size_t>(length * sound.channels))};
#pragma omp parallel for schedule(static)
  for (std::int64_t p = 0; p < std::min(outputs, length); ++p) {
    const Phase phase = phase_of(p, inputs, outputs);
    for (int c = 0; c < sound.channels; ++c)
      for (std::int64_t block = 0; block * outputs + p < length; ++block)
        result.samples[static_cast<std::size_t>(c * length + block * outputs + p)] =
            filtered(sound.channel(c), phase, block * inputs);
  }
  return result;
}

}  // namespace h3
