// The audio decoder (spec/vae.md 17): latents at 40 Hz to a 32 kHz waveform. The model is mono; the two channels of a
// sound are two batch items that never meet. All float32, on one rank: it is a fraction of the video's work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/machine.h"
#include "compute/operators.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

// What is wrong with a waveform, if anything; a reason to warn, not to fail.
struct AudioHealth {
  bool finite = true;
  bool constant = false;  // a channel does not move
  bool silent = false;    // no sample of any channel is above -80 dB of full scale
  bool good() const { return finite && !constant && !silent; }
  // "silent", "not finite", ...; empty when good.
  std::string text() const;
};
// pcm [channels, samples] f32 on the host.
AudioHealth audio_health(const Tensor& pcm);

class AudioDecoder {
 public:
  // `weights`: the audio_vae component in host memory with weight norm folded; outlives this object. Throws UserError
  // when a stored filter is not that of spec/vae.md 17.
  AudioDecoder(Machine& machine, Queue& q, const AudioVaeConfig& config, const WeightSet& weights);

  // Bytes at Machine::place() that decoding `latents` latents a channel takes beside the weights.
  static std::size_t working_bytes(const AudioVaeConfig& config, std::int64_t latents);

  // rows [2 A, latent channels] f32 on the host, normalised, all of the left channel first -> pcm [2, hop * A] f32 on
  // the host, in [-1, 1]. Returns when pcm is complete.
  void decode(Queue& q, const Tensor& rows, const Tensor& pcm);

 private:
  struct Room;
  Tensor stage(Queue& q, std::size_t i, const Tensor& x, Room& room);
  void amp_block(Queue& q, const std::string& name, std::size_t kernel, const Tensor& x, const Tensor& y, Room& room);
  void activation(Queue& q, const std::string& name, const Tensor& x, const Tensor& y);
  void conv(Queue& q, const std::string& name, std::int64_t dilation, const Tensor& x, const Tensor& y);

  Machine& machine_;
  Operators& operators_;
  AudioVaeConfig config_;
  std::unique_ptr<WeightGroups> weights_;
  Buffer filter_buffer_;
  Tensor filter_;  // [12]
};

}  // namespace h3
