// Latents as the VAEs know them against rows as the transformer packs them (spec/dit.md 3.2). Video: latent frame
// slowest, then patch row, then patch column, features channel-major within a 2 x 2 patch. Audio: all latents of the
// left channel, then all of the right. All tensors are contiguous float32 in host memory.
#pragma once

#include "compute/tensor.h"

namespace h3 {

// Side of a patch of video latents.
inline constexpr std::int64_t kPatch = 2;

// The shape of the rows of a video latent [c, t, h, w]: [t h/2 w/2, 4 c]. h and w are even.
Shape video_rows_shape(const Shape& latent);

// latent [c, t, h, w] -> rows [t h/2 w/2, 4 c], and back.
void video_rows_from_latent(const Tensor& latent, const Tensor& rows);
void video_latent_from_rows(const Tensor& rows, const Tensor& latent);

// latent [2, c, a] -> rows [2 a, c], and back.
void audio_rows_from_latent(const Tensor& latent, const Tensor& rows);
void audio_latent_from_rows(const Tensor& rows, const Tensor& latent);

}  // namespace h3
