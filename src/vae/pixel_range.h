// The pixel domain of the video autoencoder (spec/vae.md 4): RGB in [0, 1] less mean, over std, per channel.
#pragma once

#include <array>

namespace h3 {

inline constexpr std::array<float, 3> kPixelMean{0.485f, 0.456f, 0.406f};
inline constexpr std::array<float, 3> kPixelStd{0.229f, 0.224f, 0.225f};

}  // namespace h3
