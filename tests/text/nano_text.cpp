#include "text/nano_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "media/png.h"
#include "media/resize.h"
#include "text/clip_sampling.h"
#include "weights/load.h"

namespace h3::test {
namespace {

const ModelFolder& nano_model() {
  static const ModelFolder model = open_model(nano_path());
  return model;
}

WeightSet load_weights(Precision precision) {
  LoadOptions options;
  options.precision = precision;
  return load_component(nano_model(), Component::text_encoder, options);
}

std::string golden_prompt(const Goldens& goldens, const std::string& name) {
  const auto& meta = goldens.json().at("meta").at("cases").at(name);
  if (meta.contains("prompt")) return meta.at("prompt").get<std::string>();
  // The prompt is what follows the last vision marker, or the label of a sound after it.
  const Tensor ids = goldens.at(name + ".ids");
  const std::int64_t* values = ids.as<std::int64_t>();
  std::vector<std::int32_t> tail(values, values + ids.elements());
  const auto marker = std::find(tail.rbegin(), tail.rend(), nano_text_config().vision_end);
  tail.erase(tail.begin(), marker.base());
  const std::string text = nano_tokenizer().decode(tail);
  return text.starts_with("<Audio ") ? text.substr(text.find(">: ") + 3) : text;
}

}  // namespace

const Tokenizer& nano_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(nano_path() + "/tokenizer");
  return tokenizer;
}

const TextConfig& nano_text_config() {
  return nano_model().config().text;
}

const WeightSet& nano_text_weights(DType dtype) {
  static const WeightSet f32 = load_weights(Precision::f32), bf16 = load_weights(Precision::bf16);
  return dtype == DType::f32 ? f32 : bf16;
}

PresentedMedia picture_of(std::int64_t rows, std::int64_t columns) {
  return {PresentedMedia::Kind::picture, {1, rows, columns}, {}, false};
}

PresentedMedia clip_of(std::int64_t frames, std::int64_t rows, std::int64_t columns, bool soundtrack) {
  const auto times = block_times(static_cast<std::int64_t>(sampled_frames(frames).size()));
  const VisionGrid grid{static_cast<std::int64_t>(times.size()), rows, columns};
  return {PresentedMedia::Kind::clip, grid, times, soundtrack};
}

PresentedMedia sound_of() {
  return {PresentedMedia::Kind::sound, {}, {}, false};
}

PresentationRequest golden_request(const Goldens& goldens, const std::string& name) {
  PresentationRequest request{golden_prompt(goldens, name), {}};
  if (name == "fl2va_one") request.media = {picture_of(14, 20)};
  if (name == "fl2va_both") request.media = {picture_of(14, 20), picture_of(14, 20)};
  if (name == "ref2va_image_clip") request.media = {picture_of(20, 14), clip_of(39, 12, 16, true), sound_of()};
  if (name == "ref2va_odd") request.media = {clip_of(30, 12, 16, false), picture_of(14, 20)};
  return request;
}

Presentation golden_presentation(const Goldens& goldens, const std::string& name) {
  return present(nano_tokenizer(), nano_text_config(), golden_request(goldens, name));
}

VisionFeatures golden_features(Machine& machine, const Goldens& goldens, const std::string& prefix, DType dtype) {
  VisionFeatures features;
  const auto take = [&](const std::string& name) {
    const Tensor stored = goldens.at(prefix + name);
    features.memory.emplace_back(machine, stored.bytes(), Place::host);
    const Tensor t = features.memory.back().tensor(stored.shape, dtype);
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      const float x = stored.as<float>()[i];
      if (dtype == DType::f32) {
        t.as<float>()[i] = x;
      } else {
        t.as<bf16_t>()[i] = to_bf16(x);
      }
    }
    return t;
  };
  features.embeddings = take(".merged");
  for (int k = 0; k < 3; ++k) features.deepstack.push_back(take(".deepstack" + std::to_string(k)));
  return features;
}

std::vector<Image> golden_frames(const Goldens& goldens, const std::string& name) {
  const auto& entry = goldens.json().at("frames").at(name);
  const auto shape = entry.at("shape").get<std::vector<int>>();
  const Image stacked = read_png(source_path("tests/goldens/" + entry.at("file").get<std::string>()));
  std::vector<Image> frames;
  for (int i = 0; i < shape[0]; ++i) {
    const std::uint8_t* first = stacked.pixel(0, i * shape[1]);
    frames.emplace_back(shape[2], shape[1], std::span(first, static_cast<std::size_t>(shape[1] * shape[2] * 3)));
  }
  return frames;
}

std::vector<VisionPixels> golden_pixels(const Goldens& goldens, const std::string& name) {
  const auto picture = [&](const char* source, int width, int height) {
    return picture_patches(resize_lanczos(golden_frames(goldens, source)[0], width, height));
  };
  const auto clip = [&](const char* source) {
    const std::vector<Image> frames = golden_frames(goldens, source);
    std::vector<Image> samples;
    for (const std::int64_t i : sampled_frames(static_cast<std::int64_t>(frames.size()))) {
      samples.push_back(frames[static_cast<std::size_t>(i)]);
    }
    return clip_patches(samples);
  };
  if (name == "fl2va_one") return {picture("png:first", 256, 192)};
  if (name == "fl2va_both") {
    return {picture("png:first", 256, 192), picture_patches(cover(golden_frames(goldens, "png:last")[0], 256, 192))};
  }
  if (name == "ref2va_image_clip") return {picture("png:portrait", 192, 256), clip("png:clip")};
  if (name == "ref2va_odd") return {clip("png:silent"), picture("png:first", 288, 192)};
  return {};
}

}  // namespace h3::test
