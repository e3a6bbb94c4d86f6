#include "weights/weight_set.h"

#include "base/error.h"

namespace h3 {

std::string_view name_of(Component component) {
  switch (component) {
    case Component::transformer:
      return "transformer";
    case Component::text_encoder:
      return "text encoder";
    case Component::video_vae:
      return "video VAE";
    case Component::audio_vae:
      return "audio VAE";
  }
  throw RunError("unknown component");
}

const Tensor& WeightSet::at(std::string_view name) const {
  const auto it = tensors_.find(name);
  H3_CHECK(it != tensors_.end(), "no weight named " + std::string(name));
  return it->second;
}

LinearWeights WeightSet::linear(std::string_view name) const {
  LinearWeights w;
  w.weight = at(std::string(name) + ".weight");
  const std::string bias = std::string(name) + ".bias";
  if (has(bias)) w.bias = at(bias);
  w.full_outputs = w.weight.size(0);
  return w;
}

std::size_t WeightSet::bytes() const {
  std::size_t n = 0;
  for (const auto& [name, t] : tensors_) n += t.bytes();
  return n;
}

}  // namespace h3
