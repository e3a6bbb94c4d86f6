// Composes a whole HDF5 file in memory. The bytes are then written by plain system calls (durable_file.h): a full disk
// is an ordinary error with its reason, where HDF5 itself would be left with a file it can neither flush nor close, and
// writing needs no HDF5 lock. Equal content gives equal bytes: no times are stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "checkpoint/hdf5_library.h"

namespace h3 {

// What stands beside each dataset, for people who open the file with other tools.
struct DatasetNote {
  std::string_view name, axes, units, meaning;
};

class Hdf5Composer {
 public:
  // `kind` goes into the root attribute "format"; schema and program version follow it.
  Hdf5Composer(std::string_view kind, std::int64_t schema);
  ~Hdf5Composer();
  Hdf5Composer(const Hdf5Composer&) = delete;
  Hdf5Composer& operator=(const Hdf5Composer&) = delete;

  // Attributes of the root group. A text may not be empty.
  void attribute(const std::string& name, std::string_view text);
  void attribute(const std::string& name, std::int64_t value);

  // A dataset in row-major order, with the attributes axes, units, meaning, dtype and xxh3_128 (of its bytes).
  void dataset(const DatasetNote& note, DType dtype, std::span<const std::int64_t> shape, const void* data);
  // A dataset that is one UTF-8 string; not empty.
  void text(const DatasetNote& note, std::string_view text);

  // The file's bytes. Call once.
  std::string finish();

 private:
  void describe(hid_t dataset, const DatasetNote& note, std::string_view dtype, const void* data, std::size_t bytes);

  Hdf5Guard guard_;
  void* closed_ = nullptr;  // the buffer of the closed file
  Hdf5Handle file_;
};

}  // namespace h3
