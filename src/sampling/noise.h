// The initial noise of a render, drawn for the whole tensors in the order that one of three programs uses, then packed
// into rows. The recipes share the generator but not the order, so a seed means another video under each (spec/dit.md
// 5.5). diffusers: one stream for conditions, video, audio. original: a fresh stream of the same seed for each. comfy:
// a fresh one for each condition, one stream for video, then audio. Every rank draws everything and keeps its rows,
// which is why the noise cannot depend on the shards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor.h"
#include "scene/scene.h"

namespace h3 {

struct NoiseRequest {
  NoiseRecipe recipe = NoiseRecipe::diffusers;
  std::uint64_t seed = 0;
  Shape video;                     // target latent [c, T, h, w]
  std::int64_t audio_latents = 0;  // A, of one channel
  std::int64_t audio_channels = 32;
  std::vector<Shape> conditions;  // visual ones in packed order, [c, t, h, w] each
  // Starting latents given instead of drawn, contiguous float32 in host memory: video [c, T, h, w], audio [2, c, A].
  // A given one is not drawn, so later draws of the same stream move up.
  Tensor given_video, given_audio;
};

struct Noise {
  std::vector<float> video;                    // [T h/2 w/2, 4 c]
  std::vector<float> audio;                    // [2 A, audio channels]
  std::vector<std::vector<float>> conditions;  // [rows, 4 c] of each
  std::string generator_state;                 // of the stream that the last draw came from (NormalGenerator::state)
};

Noise draw_noise(const NoiseRequest& request);

// Mixes a visual condition's noise into its clean rows, in place: 0.999 x + (1 - 0.999) n in float32, once before
// sampling (spec/dit.md 5.6). The second factor is 1 - float32(0.999), with `comfy` float32(0.001).
void mix_condition_noise(NoiseRecipe recipe, std::span<const float> noise, std::span<float> rows);

}  // namespace h3
