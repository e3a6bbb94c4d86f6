// Where the values of planned tensors come from: files of either layout, or a seed. A source delivers rows in canonical
// order and in the dtype that the plan states, so that whoever fills memory, hashes or writes a model needs to know
// neither layouts nor dtypes of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weights/safetensors.h"
#include "weights/tensor_plan.h"

namespace h3 {

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Rows [begin, end) of a tensor of the plan. Thread-safe. Throws RunError when the system cannot read.
  virtual void read_rows(const PlannedTensor& tensor, std::int64_t begin, std::int64_t end, void* to) const = 0;
  // The whole tensor.
  std::vector<std::byte> read(const PlannedTensor& tensor) const;
};

// The files of one component, headers checked (component_files.h).
class FileSource : public TensorSource {
 public:
  struct Stored {
    const SafetensorsFile* file = nullptr;
    TensorEntry entry;
  };
  FileSource(std::vector<SafetensorsFile> files, Layout layout) : files_(std::move(files)), layout_(layout) {}
  void read_rows(const PlannedTensor& tensor, std::int64_t begin, std::int64_t end, void* to) const override;
  const std::vector<SafetensorsFile>& files() const { return files_; }
  // The stored tensor of this name, or null.
  const Stored* find(const std::string& name) const;
  void add(const std::string& name, std::size_t file, const TensorEntry& entry) {
    stored_[name] = {&files_[file], entry};
  }

 private:
  std::vector<SafetensorsFile> files_;
  Layout layout_;
  std::map<std::string, Stored> stored_;
};

}  // namespace h3
