#include "cli/nano_copy.h"

#include "base/file.h"
#include "support/goldens.h"
#include "weights/safetensors.h"

namespace h3::test {

NanoCopy::NanoCopy() {
  const fs::path from = nano_path();
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path to = file(entry.path().lexically_relative(from));
    std::error_code no_link;
    if (entry.is_directory()) {
      fs::create_directories(to);
      continue;
    }
    fs::create_directories(to.parent_path());
    fs::create_hard_link(entry.path(), to, no_link);
    if (no_link) fs::copy_file(entry.path(), to);
  }
}

// Under a new name first: writing into a hard link would change the model that everybody uses.
void NanoCopy::replace(const std::string& name, const std::string& content) {
  const fs::path fresh = file(name + ".new");
  write_text(fresh, content);
  fs::rename(fresh, file(name));
}

void NanoCopy::resize(const std::string& name, std::int64_t change) {
  std::string content = read_file(file(name));
  content.resize(static_cast<std::size_t>(static_cast<std::int64_t>(content.size()) + change));
  replace(name, content);
}

void NanoCopy::edit_json(const std::string& name, const std::function<void(Json&)>& change) {
  Json json = read_json(file(name));
  change(json);
  replace(name, json.dump(2));
}

void NanoCopy::edit_tensor(const std::string& name, const std::string& tensor,
                           const std::function<void(HeldTensor&)>& change) {
  std::map<std::string, HeldTensor> held;
  std::map<std::string, std::string> metadata;
  {
    const SafetensorsFile opened(file(name));
    metadata = opened.metadata();
    for (const auto& [key, entry] : opened.tensors()) held[key] = {entry.dtype, entry.shape, opened.read(entry)};
  }
  change(held.at(tensor));
  std::map<std::string, Tensor> views;
  for (auto& [key, t] : held) views[key] = Tensor(t.bytes.data(), t.shape, t.dtype);
  write_safetensors(file(name), views, metadata);
}

void write_zeros(const fs::path& file, const std::vector<std::pair<std::string, Shape>>& tensors) {
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, Tensor> views;
  for (const auto& [name, shape] : tensors) {
    auto& list = values[name];
    list.resize(static_cast<std::size_t>(shape.elements()));
    views[name] = Tensor(list.data(), shape, DType::f32);
  }
  write_safetensors(file, views);
}

}  // namespace h3::test
