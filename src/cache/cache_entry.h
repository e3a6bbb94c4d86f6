// What an encoder made of an input, with everything that decided it: the states of a prompt, the latents of a picture,
// clip or sound. On disk an entry is an HDF5 file of its own, whose every part has a checksum; its key stands in it in
// full, so that a file is never taken for another's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "checkpoint/host_array.h"

namespace h3 {

struct CacheFacts {
  std::string key;        // JSON: every input, the encoder's identity, the numerics
  std::string kind;       // "text", "pictures", "sound"
  std::int64_t rows = 0;  // of the packed sequence
  double seconds = 0;     // that encoding took
  bool operator==(const CacheFacts&) const = default;
};

struct CacheEntry {
  CacheFacts facts;
  HostArray value;
  bool operator==(const CacheEntry&) const = default;
};

// The file's bytes.
std::string compose_entry(const CacheEntry& entry);
// Read and verify a whole entry, or what it is without its value. Throw Hdf5Failure for a damaged file, UserError for
// one that is not there or not an entry (checkpoint/hdf5_reader.h).
CacheEntry parse_entry(const std::filesystem::path& path);
CacheFacts parse_entry_facts(const std::filesystem::path& path);

}  // namespace h3
