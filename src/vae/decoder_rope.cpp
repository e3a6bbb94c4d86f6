#include "vae/decoder_rope.h"

#include <array>
#include <cmath>

#include "base/dtype.h"
#include "base/error.h"

namespace h3 {

std::int64_t rope_frequencies(const VideoVaeConfig& config) {
  const auto channels = static_cast<std::int64_t>(static_cast<double>(config.decoder_head_dim) * config.rope_ratio);
  if (channels <= 0 || channels % 6 != 0)
    throw UserError("video autoencoder", "decoder_rope_dim_ratio",
                    fmt::format("{} of {} channels rotate", channels, config.decoder_head_dim), "a multiple of 6");
  return channels / 6;
}

float rope_base_angle(std::int64_t i, std::int64_t n, VaeProfile profile) {
  constexpr float kTwoPi = 6.2831855f;
  const DType rounded = profile == VaeProfile::R ? DType::f16 : DType::f32;
  const float fraction = round_to(rounded, (static_cast<float>(i) + 0.5f) / static_cast<float>(n));
  const float coordinate = round_to(rounded, 2.0f * fraction - 1.0f);
  return round_to(rounded, kTwoPi * coordinate);
}

RopeTable decoder_rope(const VideoVaeConfig& config, const TokenGrid& grid, std::int64_t extra, VaeProfile profile) {
  const std::int64_t per_axis = rope_frequencies(config);
  std::vector<float> frequencies;
  for (std::int64_t k = 0; k < per_axis; ++k)
    frequencies.push_back(
        static_cast<float>(std::pow(config.rope_theta, -static_cast<double>(k) / static_cast<double>(per_axis))));

  RopeTable table;
  table.rows = grid.tokens() + extra;
  table.columns = 3 * per_axis;
  // cos and sin are taken in double of the float32 angle, so that they do not depend on the host's library.
  const DType rounded = profile == VaeProfile::R ? DType::f16 : DType::f32;
  const auto append = [&](const std::array<float, 3>& base) {
    for (const float b : base)
      for (const float f : frequencies) {
        const double angle = b * f;
        table.cos.push_back(round_to(rounded, static_cast<float>(std::cos(angle))));
        table.sin.push_back(round_to(rounded, static_cast<float>(std::sin(angle))));
      }
  };
  for (std::int64_t t = 0; t < grid.t; ++t)
    for (std::int64_t y = 0; y < grid.h; ++y)
      for (std::int64_t x = 0; x < grid.w; ++x)
        append({rope_base_angle(t, grid.t, profile), rope_base_angle(y, grid.h, profile),
                rope_base_angle(x, grid.w, profile)});
  for (std::int64_t e = 0; e < extra; ++e) append({0.0f, 0.0f, 0.0f});
  return table;
}

}  // namespace h3
