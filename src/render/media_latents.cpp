#include "render/media_latents.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "sampling/latent_rows.h"

namespace h3 {

LatentVolume encode_pictures(Session& session, VideoEncoder& encoder, std::span<const Image> frames,
                             Posterior posterior) {
  const Image& first = frames.front();
  std::vector<std::uint8_t> pixels;
  pixels.reserve(frames.size() * first.rgb.size());
  for (const Image& frame : frames) pixels.insert(pixels.end(), frame.rgb.begin(), frame.rgb.end());
  const Tensor tensor(pixels.data(), {static_cast<std::int64_t>(frames.size()), first.height, first.width, 3},
                      DType::u8);
  return encode_video(session.machine(), session.queue(), session.communicator(), encoder, tensor, posterior,
                      session.row_shares());
}

AudioRows encode_sound(Session& session, AudioEncoder& encoder, const Sound& sound) {
  const Tensor samples(const_cast<float*>(sound.samples.data()), {2, static_cast<std::int64_t>(sound.length())},
                       DType::f32);
  return encode_sounds(session.machine(), session.queue(), session.communicator(), encoder, {&samples, 1},
                       session.row_shares())
      .front();
}

// The first `kept` latents of each side.
static void keep_latents(AudioRows& rows, std::int64_t kept) {
  const std::int64_t latents = rows.shape[0] / 2, width = rows.shape[1];
  const auto side = rows.values.begin() + latents * width;
  std::vector<float> values(rows.values.begin(), rows.values.begin() + kept * width);
  values.insert(values.end(), side, side + kept * width);
  rows = {{2 * kept, width}, std::move(values)};
}

MediaLatents encode_media(Session& session, const std::vector<MediaItem>& items, const std::vector<MediaPixels>& media,
                          Posterior posterior, StageTimes& times,
                          const std::function<void(const std::string& field)>& progress) {
  MediaLatents latents;
  std::optional<VideoEncoder> video;
  std::optional<AudioEncoder> audio;
  for (std::size_t i = 0; i < items.size(); ++i) {
    progress(items[i].field);
    if (items[i].encoded_frames > 0) {
      const WeightSet& weights = session.weights(Component::video_vae, times);
      StageTimer timer(times, "encode");
      if (!video) video.emplace(session.machine(), session.queue(), session.config().video_vae, weights);
      const std::span<const Image> frames(media[i].frames.data(), static_cast<std::size_t>(items[i].encoded_frames));
      latents.visual.push_back(encode_pictures(session, *video, frames, posterior));
      CHECK_EQ(latents.visual.back().shape[1], items[i].latent_frames);
    }
    if (items[i].audio_latents > 0) {
      const WeightSet& weights = session.weights(Component::audio_vae, times);
      StageTimer timer(times, "encode");
      if (!audio) audio.emplace(session.machine(), session.queue(), session.config().audio_vae, weights);
      latents.audio.push_back(encode_sound(session, *audio, media[i].sound));
      keep_latents(latents.audio.back(), items[i].audio_latents);
    }
  }
  return latents;
}

ConditionRows ConditionValues::rows() const {
  const auto tensor = [](const std::vector<float>& values, std::int64_t width) {
    if (values.empty()) return Tensor();
    return Tensor(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size()) / width, width},
                  DType::f32);
  };
  return {tensor(visual, visual_width), tensor(audio, audio_width)};
}

ConditionValues condition_values(const TransformerConfig& config, MediaLatents& latents, NoiseRecipe recipe,
                                 const std::vector<std::vector<float>>& noise) {
  CHECK_EQ(noise.size(), latents.visual.size());
  ConditionValues values{config.video_row(), config.audio_channels, {}, {}};
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const Tensor latent = latents.visual[i].tensor();
    const Shape shape = video_rows_shape(latent.shape);
    std::vector<float> rows(static_cast<std::size_t>(shape.elements()));
    video_rows_from_latent(latent, Tensor(rows.data(), shape, DType::f32));
    mix_condition_noise(recipe, noise[i], rows);
    values.visual.insert(values.visual.end(), rows.begin(), rows.end());
  }
  for (const AudioRows& rows : latents.audio)
    values.audio.insert(values.audio.end(), rows.values.begin(), rows.values.end());
  return values;
}

}  // namespace h3
