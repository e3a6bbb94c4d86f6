// Reads one of our HDF5 files and trusts nothing in it: kind and schema are looked at first, sizes are compared with
// the file's before anything is allocated, and every dataset's checksum is verified. Two kinds of trouble are told
// apart. Hdf5Failure: storage damaged what we wrote (truncated, zeroed, flipped bits), so an older file may serve.
// UserError: something that this program never left there, which must not be overwritten.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/hdf5_library.h"
#include "checkpoint/host_array.h"

namespace h3 {

class Hdf5Reader {
 public:
  // Throws Hdf5Failure or UserError as described above; UserError too where the file is missing or may not be read.
  Hdf5Reader(const std::filesystem::path& path, FileLocking locking);

  // Checks the root attributes "format" and "schema". Throws UserError for another kind or a newer schema.
  void require(const std::string& kind, std::int64_t newest_schema) const;

  std::int64_t integer(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;

  bool has(const std::string& name) const;
  // A dataset of `rank` dimensions, of any dtype that we write.
  HostArray array(const std::string& name, std::size_t rank) const;
  struct Floats {
    std::vector<float> values;
    std::vector<std::int64_t> shape;
  };
  // A dataset of `rank` dimensions of f32.
  Floats floats(const std::string& name, std::size_t rank) const;
  std::string text(const std::string& name) const;
  // A text dataset that holds JSON.
  nlohmann::ordered_json json(const std::string& name) const;

  // All datasets' names and attributes as JSON, for people.
  nlohmann::ordered_json description() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Found;
  Found find(const std::string& name, std::size_t rank) const;
  void read(const Found& found, void* to) const;
  void require_fits(const std::string& name, std::uint64_t bytes) const;
  void require_checksum(hid_t dataset, const std::string& name, const void* data, std::size_t bytes) const;
  std::vector<std::string> dataset_names() const;

  std::filesystem::path path_;
  std::uint64_t file_bytes_ = 0;
  Hdf5Guard guard_;
  std::optional<Hdf5Handle> file_;
};

}  // namespace h3
