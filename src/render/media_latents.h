// From a scene's media to the rows that condition its steps: each item encoded over all ranks (spec/vae.md 6, 16), then
// packed, the visual ones mixed with their share of the scene's noise (spec/dit.md 5.6).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "render/media_pixels.h"
#include "render/scene_encodings.h"
#include "sampling/noise.h"
#include "transformer/transformer.h"
#include "vae/audio_encoder.h"
#include "vae/video_encode.h"

namespace h3 {

// Collective. One item's pictures as normalised latents: the first `frames` of them.
LatentVolume encode_pictures(Session& session, VideoEncoder& encoder, std::span<const Image> frames,
                             Posterior posterior);
// Collective. One item's sound as normalised rows [2 latents, channels], left channel first.
AudioRows encode_sound(Session& session, AudioEncoder& encoder, const Sound& sound);

struct MediaLatents {
  std::vector<LatentVolume> visual;  // of the items with pictures, in packed order
  std::vector<AudioRows> audio;      // of the items with sound, in packed order
};

// Collective. All of a scene's media, but for what `encodings` knows, which hears of the rest; loads the encoders that
// it needs. `progress` is called before each item.
MediaLatents encode_media(Session& session, const std::vector<MediaItem>& items, const std::vector<MediaPixels>& media,
                          Posterior posterior, SceneEncodings& encodings, StageTimes& times,
                          const std::function<void(const std::string& field)>& progress);

// The rows of all conditions in packed order, as the transformer takes them.
struct ConditionValues {
  std::int64_t visual_width = 0, audio_width = 0;
  std::vector<float> visual, audio;
  ConditionRows rows() const;
};

// `noise`: one array of rows for each of `latents.visual`.
ConditionValues condition_values(const TransformerConfig& config, MediaLatents& latents, NoiseRecipe recipe,
                                 const std::vector<std::vector<float>>& noise);

}  // namespace h3
