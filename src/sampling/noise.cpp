#include "sampling/noise.h"

#include <algorithm>

#include "sampling/latent_rows.h"
#include "sampling/normal_generator.h"

namespace h3 {

static std::vector<float> draw(NormalGenerator& generator, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  generator.fill(values);
  return values;
}

static std::vector<float> pack_video(const Tensor& latent) {
  const Shape shape = video_rows_shape(latent.shape);
  std::vector<float> rows(static_cast<std::size_t>(shape.elements()));
  video_rows_from_latent(latent, Tensor(rows.data(), shape, DType::f32));
  return rows;
}

static std::vector<float> pack_audio(const Tensor& latent) {
  const Shape shape{latent.size(0) * latent.size(2), latent.size(1)};
  std::vector<float> rows(static_cast<std::size_t>(shape.elements()));
  audio_rows_from_latent(latent, Tensor(rows.data(), shape, DType::f32));
  return rows;
}

static std::vector<float> draw_video(NormalGenerator& generator, const Shape& latent) {
  std::vector<float> values = draw(generator, latent.elements());
  return pack_video(Tensor(values.data(), latent, DType::f32));
}

// The first frames of a draw that has the target's frames and one for each condition, or the condition's own if those
// are more.
static std::vector<float> draw_longer_video(NormalGenerator& generator, const Shape& latent, std::int64_t frames) {
  Shape drawn = latent;
  drawn[1] = std::max(frames, latent[1]);
  std::vector<float> values = draw(generator, drawn.elements());
  const std::int64_t frame = latent[2] * latent[3];
  for (std::int64_t c = 0; c < latent[0]; ++c)
    std::copy_n(values.data() + c * drawn[1] * frame, latent[1] * frame, values.data() + c * latent[1] * frame);
  return pack_video(Tensor(values.data(), latent, DType::f32));
}

// One condition's noise; `request_stream` is drawn from by the diffusers recipe alone.
static std::vector<float> draw_condition(const NoiseRequest& request, const Shape& latent,
                                         NormalGenerator& request_stream) {
  if (request.recipe == NoiseRecipe::diffusers) return draw_video(request_stream, latent);
  NormalGenerator own(request.seed);
  if (request.recipe == NoiseRecipe::comfy) return draw(own, latent.elements());  // row order already
  return draw_longer_video(own, latent, request.video[1] + static_cast<std::int64_t>(request.conditions.size()));
}

static std::vector<float> draw_audio(const NoiseRequest& request, NormalGenerator& generator) {
  std::vector<float> values = draw(generator, 2 * request.audio_latents * request.audio_channels);
  if (request.recipe != NoiseRecipe::comfy) return values;  // row order already
  // Drawn as [channels, 2, A]; the rows run over side, then latent.
  std::vector<float> rows(values.size());
  const std::int64_t length = 2 * request.audio_latents;
  for (std::int64_t c = 0; c < request.audio_channels; ++c)
    for (std::int64_t row = 0; row < length; ++row)
      rows[static_cast<std::size_t>(row * request.audio_channels + c)] =
          values[static_cast<std::size_t>(c * length + row)];
  return rows;
}

static void check_given(const NoiseRequest& request) {
  if (request.given_video) {
    H3_CHECK(request.given_video.shape == request.video, "shape of the given video latents");
  }
  if (request.given_audio) {
    H3_CHECK((request.given_audio.shape == Shape{2, request.audio_channels, request.audio_latents}),
             "shape of the given audio latents");
  }
}

Noise draw_noise(const NoiseRequest& request) {
  check_given(request);
  Noise noise;
  NormalGenerator stream(request.seed);
  for (const Shape& latent : request.conditions) noise.conditions.push_back(draw_condition(request, latent, stream));
  noise.video = request.given_video ? pack_video(request.given_video) : draw_video(stream, request.video);
  if (request.recipe == NoiseRecipe::original) stream = NormalGenerator(request.seed);
  noise.audio = request.given_audio ? pack_audio(request.given_audio) : draw_audio(request, stream);
  noise.generator_state = stream.state();
  return noise;
}

void mix_condition_noise(NoiseRecipe recipe, std::span<const float> noise, std::span<float> rows) {
  CHECK_EQ(noise.size(), rows.size());
  constexpr float kSignal = 0.999f;
  const float level = recipe == NoiseRecipe::comfy ? 0.001f : 1.0f - kSignal;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = kSignal * rows[i] + level * noise[i];
}

}  // namespace h3
