// Helpers of the tests of weights: folders that go away, model folders to damage, and the nano model rewritten into the
// original layout by code of its own, row by row from the tables of spec/dit.md 2.2 and vae.md 3.2.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "compute/tensor.h"

namespace h3::test {

// A fresh folder below the system's temporary folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A tensor in the hands of a test.
struct Held {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};
using HeldTensors = std::map<std::string, Held>;

HeldTensors read_tensors(const std::filesystem::path& file);
void write_tensors(const std::filesystem::path& file, const HeldTensors& tensors);
// Reads, changes and writes a file.
void edit_tensors(const std::filesystem::path& file, const std::function<void(HeldTensors&)>& change);

nlohmann::json read_json(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& text);
void edit_json(const std::filesystem::path& file, const std::function<void(nlohmann::json&)>& change);

// A copy of the nano model that may be damaged.
std::filesystem::path copy_nano(const std::filesystem::path& to);
// The transformer of a copied nano model as one file instead of two shards.
void join_transformer(const std::filesystem::path& model);
// The nano model in the original layout: `to`/FL2VA.
std::filesystem::path write_original_nano(const std::filesystem::path& to);

// What `call` throws as UserError; fails the test when it throws nothing or something else.
std::string user_error_of(const std::function<void()>& call);

}  // namespace h3::test
