// Pictures of a clip's latents without decoding all of them: a linear map from the channels of one latent to the 4 x 4
// colours of its square of pixels. No table of the released autoencoder is published, and latents of every model, scene
// and step are other ones, so the map is fitted by least squares to what the model's own decoder makes of a few of the
// clip's tiles. The first latent frame of an encoded clip stands for one frame, the others for four: each kind has a
// map, to the last of its frames. Good for a look, not for measuring.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compute/machine.h"
#include "vae/latent_grid.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

class LatentColours {
 public:
  // Colours along a side of a latent's square.
  static constexpr std::int64_t kSide = 4;
  // Tiles that are decoded for the fit.
  static constexpr std::int64_t kTiles = 4;

  // `weights`: the video_vae component; `rows` [frames * (height / 2) * (width / 2), 4 * channels] f32 on the host, the
  // transformer's video rows, height and width in latents. While it fits it takes what decoding kTiles tiles takes, and
  // leaves nothing on the device. Not collective.
  LatentColours(Machine& machine, Queue& q, const VideoVaeConfig& config, const WeightSet& weights, VaeProfile profile,
                const Tensor& rows, std::int64_t frames, std::int64_t height, std::int64_t width);

  // RGB [kSide * height, kSide * width, 3] of one latent frame.
  std::vector<std::uint8_t> picture(std::int64_t frame) const;

 private:
  static constexpr std::int64_t kColours = kSide * kSide * 3;
  std::vector<double> latent(std::int64_t frame, std::int64_t y, std::int64_t x) const;

  std::int64_t channels_, height_, width_, clip_tokens_;
  LatentGrid grid_;
  std::array<std::vector<double>, 2>
      maps_;  // by kind: [channels + 1, kColours], the last row the constant; give 0..255
};

}  // namespace h3
