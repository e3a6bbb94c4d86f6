// Another sample rate by the windowed sinc of torchaudio's default resampler, without delay: what stands at a time
// stays there (spec/vae.md 18.4).
#pragma once

#include <cstdint>

#include "media/sound.h"

namespace h3 {

// Samples a channel that resampled() gives: ceil(length * to / from).
std::int64_t resampled_length(std::int64_t length, int from, int to);

// The sound at `rate`; itself where the rates are equal. Rates are positive.
Sound resampled(const Sound& sound, int rate);

}  // namespace h3
