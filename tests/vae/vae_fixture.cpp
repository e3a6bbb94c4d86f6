#include "vae_fixture.h"

#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "parallel/solo_communicator.h"
#include "support/goldens.h"
#include "weights/load.h"
#include "weights/synthetic.h"
#include "weights/tensor_plan.h"

namespace h3::test {

static const ModelFolder& nano_model() {
  static const ModelFolder model = open_model(nano_path());
  return model;
}

const ModelConfig& nano_config() {
  return nano_model().config();
}

const WeightSet& nano_weights(Component component, VaeProfile profile) {
  static std::map<std::pair<Component, VaeProfile>, WeightSet> loaded;
  const auto key = std::pair(component, profile);
  if (!loaded.contains(key)) {
    LoadOptions options;
    options.vae_profile = profile;
    loaded[key] = load_component(nano_model(), component, options);
  }
  return loaded.at(key);
}

VideoVaeConfig small_vae_config() {
  VideoVaeConfig config = released_model_config().video_vae;
  config.decoder_layers = 2;
  config.decoder_heads = 2;
  config.decoder_head_dim = 8;
  config.widths = {8, 8, 8, 8, 16, 16};
  config.norm_groups = 4;
  config.blocks_per_level = 1;
  return config;
}

WeightSet small_vae_weights(const VideoVaeConfig& config) {
  const ComponentPlan plan = plan_video_vae(config);
  const SyntheticSource source(7, Component::video_vae);
  auto memory = std::make_shared<std::vector<std::vector<float>>>();
  WeightSet weights;
  for (const PlannedTensor& tensor : plan.tensors) {
    std::vector<float>& values = memory->emplace_back(static_cast<std::size_t>(tensor.shape.elements()));
    source.read_rows(tensor, 0, tensor.rows(), values.data());
    weights.add(tensor.name, Tensor(values.data(), tensor.shape, DType::f32));
  }
  weights.own(memory);
  return weights;
}

Rows random_rows(const VideoVaeConfig& config, std::int64_t frames, std::int64_t height, std::int64_t width) {
  Rows rows;
  rows.shape = {frames * (height / 2) * (width / 2), 4 * config.latent_channels};
  rows.values.resize(static_cast<std::size_t>(rows.shape.elements()));
  std::mt19937 random(11);
  for (float& v : rows.values) v = static_cast<float>(random() % 4096) / 1024.0f - 2.0f;
  return rows;
}

DecodedClip decode(Machine& machine, Communicator& ranks, VideoDecoder& decoder, const Rows& rows,
                   const VideoDecodeRequest& request) {
  const auto q = machine.make_queue();
  DecodedClip clip;
  clip.height = request.height;
  clip.width = request.width;
  VideoDecodeCalls calls;
  calls.frames = [&](std::int64_t first, const Tensor& frames) {
    CHECK_EQ(first, clip.frames);
    CHECK_EQ(frames.size(1), clip.height);
    CHECK_EQ(frames.size(2), clip.width);
    clip.frames += frames.size(0);
    const auto* from = frames.as<std::uint8_t>();
    clip.u8.insert(clip.u8.end(), from, from + frames.elements());
  };
  calls.raw = [&](Queue&, std::int64_t first, const Tensor& frames) {
    const std::int64_t area = clip.height * clip.width;
    for (std::int64_t f = 0; f < frames.size(1); ++f) {
      std::vector<float>& frame = clip.raw[first + f];
      H3_CHECK(frame.empty(), "a frame came twice");
      for (std::int64_t c = 0; c < 3; ++c) {
        const float* from = frames.as<float>() + c * frames.stride(0) + f * frames.stride(1);
        frame.insert(frame.end(), from, from + area);
      }
    }
  };
  clip.report = decode_video(machine, *q, ranks, decoder, rows.tensor(), request, calls);
  return clip;
}

DecodedClip decode_alone(Machine& machine, VideoDecoder& decoder, const Rows& rows, const VideoDecodeRequest& request) {
  SoloCommunicator alone(machine);
  return decode(machine, alone, decoder, rows, request);
}

}  // namespace h3::test
