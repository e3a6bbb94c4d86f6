// A copy of the nano model that a test may damage: unchanged files are hard links (copies where a file system has
// none), a file gets content of its own before it is changed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "cli/program.h"
#include "compute/tensor.h"

namespace h3::test {

// A tensor in the hands of a test.
struct HeldTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};

class NanoCopy {
 public:
  NanoCopy();
  std::string path() const { return folder_.path() / "model"; }
  fs::path file(const std::string& name) const { return folder_.path() / "model" / name; }

  void remove(const std::string& name) { fs::remove_all(file(name)); }
  void resize(const std::string& name, std::int64_t change);  // bytes more or, where negative, fewer
  void replace(const std::string& name, const std::string& content);
  void edit_json(const std::string& name, const std::function<void(Json&)>& change);
  // Reads a safetensors file, changes one tensor, and writes it again.
  void edit_tensor(const std::string& name, const std::string& tensor, const std::function<void(HeldTensor&)>& change);

 private:
  TemporaryFolder folder_;
};

// Writes a safetensors file of tensors whose elements are all zero.
void write_zeros(const fs::path& file, const std::vector<std::pair<std::string, Shape>>& tensors);

}  // namespace h3::test
