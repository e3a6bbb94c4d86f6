// What the tests of the autoencoders share: the nano model's weights, a smaller model of seeded weights, and decoding
// to plain vectors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/machine.h"
#include "parallel/communicator.h"
#include "vae/video_decode.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3::test {

// The nano model of jobs/nano; loaded once a process and profile.
const ModelConfig& nano_config();
const WeightSet& nano_weights(Component component, VaeProfile profile = VaeProfile::F);

// An autoencoder of two thin blocks for tests that decode often, and seeded weights for it.
VideoVaeConfig small_vae_config();
WeightSet small_vae_weights(const VideoVaeConfig& config);

// Seeded latents as the transformer's rows [frames * height / 2 * width / 2, 4 * channels].
struct Rows {
  Shape shape;
  std::vector<float> values;
  Tensor tensor() const { return Tensor(const_cast<float*>(values.data()), shape, DType::f32); }
};
Rows random_rows(const VideoVaeConfig& config, std::int64_t frames, std::int64_t height, std::int64_t width);

struct DecodedClip {
  std::int64_t frames = 0, height = 0, width = 0;
  std::vector<std::uint8_t> u8;                    // [frames, height, width, 3]; on the writer
  std::map<std::int64_t, std::vector<float>> raw;  // by frame: [3, height, width]; frames made on this rank
  VideoDecodeReport report;
};
// Decodes `rows` and checks that frames come in order and without gaps.
DecodedClip decode(Machine& machine, Communicator& ranks, VideoDecoder& decoder, const Rows& rows,
                   const VideoDecodeRequest& request);
DecodedClip decode_alone(Machine& machine, VideoDecoder& decoder, const Rows& rows, const VideoDecodeRequest& request);

}  // namespace h3::test
