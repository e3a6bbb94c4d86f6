#include "render/media_latents.h"

#include <algorithm>
#include <cstring>
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

static std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

// A latent or rows as the cache has them.
template <typename T>
static T taken_from(const HostArray& known) {
  T taken{Shape{std::span<const std::int64_t>(known.shape)}, std::vector<float>(known.bytes.size() / sizeof(float))};
  std::memcpy(taken.values.data(), known.bytes.data(), known.bytes.size());
  return taken;
}

namespace {

// A scene's media, item by item; encoders are made when first needed.
class MediaEncoding {
 public:
  MediaEncoding(Session& session, SceneEncodings& encodings, StageTimes& times)
      : session_(session), encodings_(encodings), times_(times) {}

  LatentVolume pictures(std::size_t i, const MediaItem& item, const MediaPixels& media, Posterior posterior) {
    if (const HostArray* known = encodings_.known(SceneEncodings::Part::pictures, i))
      return taken_from<LatentVolume>(*known);
    const WeightSet& weights = session_.weights(Component::video_vae, times_);
    StageTimer timer(times_, "encode");
    if (!video_) video_.emplace(session_.machine(), session_.queue(), session_.config().video_vae, weights);
    const std::span<const Image> frames(media.frames.data(), static_cast<std::size_t>(item.encoded_frames));
    LatentVolume latent = encode_pictures(session_, *video_, frames, posterior);
    CHECK_EQ(latent.shape[1], item.latent_frames);
    keep(SceneEncodings::Part::pictures, i, latent, timer.stop());
    return latent;
  }

  AudioRows sound(std::size_t i, const MediaItem& item, const MediaPixels& media) {
    if (const HostArray* known = encodings_.known(SceneEncodings::Part::sound, i)) return taken_from<AudioRows>(*known);
    const WeightSet& weights = session_.weights(Component::audio_vae, times_);
    StageTimer timer(times_, "encode");
    if (!audio_) audio_.emplace(session_.machine(), session_.queue(), session_.config().audio_vae, weights);
    AudioRows rows = encode_sound(session_, *audio_, media.sound);
    keep_latents(rows, item.audio_latents);
    keep(SceneEncodings::Part::sound, i, rows, timer.stop());
    return rows;
  }

 private:
  template <typename T>
  void keep(SceneEncodings::Part part, std::size_t i, const T& made, double seconds) {
    encodings_.made(part, i, made.values.data(), DType::f32, sizes_of(made.shape), seconds);
  }

  Session& session_;
  SceneEncodings& encodings_;
  StageTimes& times_;
  std::optional<VideoEncoder> video_;
  std::optional<AudioEncoder> audio_;
};

}  // namespace

MediaLatents encode_media(Session& session, const std::vector<MediaItem>& items, const std::vector<MediaPixels>& media,
                          Posterior posterior, SceneEncodings& encodings, StageTimes& times,
                          const std::function<void(const std::string& field)>& progress) {
  MediaLatents latents;
  MediaEncoding encoding(session, encodings, times);
  for (std::size_t i = 0; i < items.size(); ++i) {
    progress(items[i].field);
    if (items[i].encoded_frames > 0) latents.visual.push_back(encoding.pictures(i, items[i], media[i], posterior));
    if (items[i].audio_latents > 0) latents.audio.push_back(encoding.sound(i, items[i], media[i]));
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
