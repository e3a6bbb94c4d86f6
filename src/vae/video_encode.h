// Encodes a picture or a clip to the latents that condition a render (spec/vae.md 6). Every (clip, tile) pair is a unit
// of work, dealt to the ranks in contiguous blocks; the moments of all tiles, which are small, go to every rank, and
// each stitches them and draws the same sample. Items are encoded one after another, each with a generator of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/machine.h"
#include "parallel/communicator.h"
#include "scene/scene.h"
#include "vae/video_encoder.h"

namespace h3 {

// A float32 tensor [channels, frames, height, width] on the host.
struct LatentVolume {
  Shape shape;
  std::vector<float> values;
  Tensor tensor() { return Tensor(values.data(), shape, DType::f32); }
  // The same with a batch axis of one in front.
  Tensor batch() { return Tensor(values.data(), {1, shape[0], shape[1], shape[2], shape[3]}, DType::f32); }
};

// Collective. Moments of `frames` [n, height, width, 3] u8 on the host, contiguous and equal on every rank: mean and
// logarithm of the variance, not clamped, [2 channels, latent frames, height / 16, width / 16]. `shares`: one a rank,
// empty: equal. Sides are multiples of 16 and at least 32 (UserError). Prepares `encoder` for the size.
LatentVolume encode_moments(Machine& machine, Queue& q, Communicator& ranks, VideoEncoder& encoder,
                            const Tensor& frames, std::vector<double> shares = {});

// The latent of moments, before normalisation: sampled as fl16(mean + std * noise), or the mean.
LatentVolume draw_latent(const LatentVolume& moments, Posterior posterior);
// (latent - mean) / std per channel, in place (spec/vae.md 4).
void normalize_latent(const VideoVaeConfig& config, LatentVolume& latent);

// Collective. All of it: normalised latents [channels, latent frames, height / 16, width / 16], the same on every rank.
// Rows of the transformer follow by video_rows_from_latent (sampling/latent_rows.h).
LatentVolume encode_video(Machine& machine, Queue& q, Communicator& ranks, VideoEncoder& encoder, const Tensor& frames,
                          Posterior posterior = Posterior::sample42, std::vector<double> shares = {});

}  // namespace h3
