// The audio encoder (spec/vae.md 16): a 32 kHz waveform to latents at 40 Hz, for sounds given as references. The model
// is mono, and a channel is the unit of work: channels are dealt to the ranks and their latents go to all of them. All
// float32; the mean is the latent, nothing is drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "parallel/communicator.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

class AudioEncoder {
 public:
  // `weights`: the audio_vae component in host memory with weight norm folded; outlives this object.
  AudioEncoder(Machine& machine, Queue& q, const AudioVaeConfig& config, const WeightSet& weights);

  // Latents of a channel of `samples` samples: one a hop, the last one padded with zeros.
  static std::int64_t latents(const AudioVaeConfig& config, std::int64_t samples);
  // Bytes at Machine::place() that encoding `samples` samples takes beside the weights.
  static std::size_t working_bytes(const AudioVaeConfig& config, std::int64_t samples);

  // One channel, wave [n] f32 on the host, n >= 1 -> rows [latents, channels] f32 on the host, not normalised. Returns
  // when they are complete.
  void encode(Queue& q, const Tensor& wave, const Tensor& rows);

  const AudioVaeConfig& config() const { return config_; }

 private:
  struct Room;
  Tensor conv(Queue& q, const std::string& name, const Conv1dShape& shape, const Tensor& x, const Tensor& room);
  Tensor snake(Queue& q, const std::string& name, const Tensor& x, const Tensor& room);
  void residual(Queue& q, const std::string& name, std::int64_t dilation, const Tensor& x, Room& room);
  Tensor convolve(Queue& q, const Tensor& wave, Room& room);
  void attend(Queue& q, Room& room);
  void feed_forward(Queue& q, Room& room);

  Machine& machine_;
  Operators& operators_;
  AudioVaeConfig config_;
  std::unique_ptr<WeightGroups> weights_;
};

// A sound's rows as the transformer takes them: [2 latents, channels], left channel first, normalised.
struct AudioRows {
  Shape shape;
  std::vector<float> values;
  Tensor tensor() { return Tensor(values.data(), shape, DType::f32); }
};

// Collective. Encodes stereo sounds, each [2, n] f32 on the host and equal on every rank; every rank gets all rows.
// Throws UserError for a sound without samples. `shares`: one a rank, empty: equal.
std::vector<AudioRows> encode_sounds(Machine& machine, Queue& q, Communicator& ranks, AudioEncoder& encoder,
                                     std::span<const Tensor> sounds, std::vector<double> shares = {});

}  // namespace h3
