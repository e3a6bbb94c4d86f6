#include "sampling/latent_rows.h"

namespace h3 {

static void check_host_f32(const Tensor& t) {
  H3_CHECK(t.contiguous() && t.dtype == DType::f32 && t.place == Place::host, "contiguous float32 in host memory");
}

Shape video_rows_shape(const Shape& latent) {
  CHECK_EQ(latent.rank(), 4);
  CHECK_EQ(latent[2] % kPatch, 0);
  CHECK_EQ(latent[3] % kPatch, 0);
  return {latent[1] * (latent[2] / kPatch) * (latent[3] / kPatch), latent[0] * kPatch * kPatch};
}

// Calls move(element of the latent, element of the rows) for every pair of the two layouts.
template <typename Move>
static void for_each_video_pair(const Tensor& latent, const Tensor& rows, Move move) {
  check_host_f32(latent);
  check_host_f32(rows);
  H3_CHECK(rows.shape == video_rows_shape(latent.shape), rows.shape.text() + " for " + latent.shape.text());
  const std::int64_t channels = latent.size(0), height = latent.size(2), width = latent.size(3);
  float* row = rows.as<float>();
  for (std::int64_t t = 0; t < latent.size(1); ++t)
    for (std::int64_t y = 0; y < height; y += kPatch)
      for (std::int64_t x = 0; x < width; x += kPatch)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t p = 0; p < kPatch * kPatch; ++p) {
            const std::int64_t line = (c * latent.size(1) + t) * height + y + p / kPatch;
            move(latent.as<float>()[line * width + x + p % kPatch], *row++);
          }
}

template <typename Move>
static void for_each_audio_pair(const Tensor& latent, const Tensor& rows, Move move) {
  check_host_f32(latent);
  check_host_f32(rows);
  CHECK_EQ(latent.rank(), 3);
  const std::int64_t channels = latent.size(1), length = latent.size(2);
  H3_CHECK((rows.shape == Shape{latent.size(0) * length, channels}), rows.shape.text() + " for " + latent.shape.text());
  float* row = rows.as<float>();
  for (std::int64_t side = 0; side < latent.size(0); ++side)
    for (std::int64_t k = 0; k < length; ++k)
      for (std::int64_t c = 0; c < channels; ++c) move(latent.as<float>()[(side * channels + c) * length + k], *row++);
}

void video_rows_from_latent(const Tensor& latent, const Tensor& rows) {
  for_each_video_pair(latent, rows, [](const float& element, float& feature) { feature = element; });
}

void video_latent_from_rows(const Tensor& rows, const Tensor& latent) {
  for_each_video_pair(latent, rows, [](float& element, const float& feature) { element = feature; });
}

void audio_rows_from_latent(const Tensor& latent, const Tensor& rows) {
  for_each_audio_pair(latent, rows, [](const float& element, float& feature) { feature = element; });
}

void audio_latent_from_rows(const Tensor& rows, const Tensor& latent) {
  for_each_audio_pair(latent, rows, [](float& element, const float& feature) { element = feature; });
}

}  // namespace h3
