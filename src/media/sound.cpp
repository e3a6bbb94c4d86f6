#include "media/sound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace h3 {

Sound trimmed(const Sound& sound, std::size_t length) {
  if (length >= sound.length()) return sound;
  Sound result{sound.rate, sound.channels, {}};
  result.samples.reserve(length * static_cast<std::size_t>(sound.channels));
  for (int c = 0; c < sound.channels; ++c) {
    const auto channel = sound.channel(c).first(length);
    result.samples.insert(result.samples.end(), channel.begin(), channel.end());
  }
  return result;
}

SoundFacts facts_of(const Sound& sound) {
  SoundFacts facts;
  double sum = 0, squares = 0;
  for (const float sample : sound.samples) {
    if (!std::isfinite(sample)) {
      ++facts.not_finite;
      continue;
    }
    const double x = sample;
    sum += x;
    squares += x * x;
    facts.peak = std::max(facts.peak, std::abs(x));
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, sound.samples.size()));
  facts.mean = sum / n;
  facts.rms = std::sqrt(squares / n);
  return facts;
}

std::string doubt_about(const SoundFacts& facts) {
  if (facts.not_finite > 0) return fmt::format("{} samples are not finite", facts.not_finite);
  if (facts.rms < 1e-5) return "the sound is silent";
  if (std::abs(facts.mean) > 0.5 * facts.rms && std::abs(facts.mean) > 0.01)
    return fmt::format("the sound is off centre: mean {:.3f}, RMS {:.3f}", facts.mean, facts.rms);
  return "";
}

}  // namespace h3
