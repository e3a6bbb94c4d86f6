// Sound as float32 samples, planar: all of the left channel, then all of the right, as the audio decoder leaves them.
// Facts about a sound tell a silent, constant or broken one apart before it is muxed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace h3 {

struct Sound {
  int rate = 32000;  // samples per second and channel
  int channels = 2;
  std::vector<float> samples;  // channels * length

  std::size_t length() const { return channels > 0 ? samples.size() / static_cast<std::size_t>(channels) : 0; }
  std::span<const float> channel(int c) const {
    return std::span(samples).subspan(static_cast<std::size_t>(c) * length(), length());
  }
  double seconds() const { return static_cast<double>(length()) / rate; }
  bool operator==(const Sound&) const = default;
};

// The first `length` samples of every channel (all where there are fewer).
Sound trimmed(const Sound& sound, std::size_t length);

struct SoundFacts {
  double rms = 0, peak = 0, mean = 0;  // over all channels; samples that are not finite count as 0
  std::size_t not_finite = 0;
};
SoundFacts facts_of(const Sound& sound);

// A warning where a sound is probably broken (not finite, a constant, silent), else "".
std::string doubt_about(const SoundFacts& facts);

}  // namespace h3
