#include "render/dump.h"

#include "weights/safetensors.h"

namespace h3 {

void Dump::add(const std::string& name, const Tensor& tensor) {
  if (file_.empty()) return;
  H3_CHECK(tensor.contiguous() && tensor.place == Place::host);
  const char* data = tensor.as<char>();
  kept_[name] = {{data, data + tensor.bytes()}, tensor.shape, tensor.dtype};
}

void Dump::append_frames(const Tensor& frames) {
  if (file_.empty()) return;
  if (!kept_.count("frames")) return add("frames", frames);
  Kept& all = kept_["frames"];
  all.bytes.insert(all.bytes.end(), frames.as<char>(), frames.as<char>() + frames.bytes());
  all.shape[0] += frames.size(0);
}

void Dump::write() {
  if (file_.empty()) return;
  std::map<std::string, Tensor> tensors;
  for (auto& [name, kept] : kept_) tensors[name] = Tensor(kept.bytes.data(), kept.shape, kept.dtype);
  write_safetensors(file_, tensors);
}

}  // namespace h3
