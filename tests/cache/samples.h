// Small cache entries whose every value follows from a seed, and help to break and age files.
#pragma once

#include <filesystem>
#include <string>

#include "cache/cache_store.h"

namespace h3::test {

// About `floats` * 4 + 6000 bytes on disk.
CacheEntry sample_entry(int seed, std::int64_t floats = 1000);
std::string sample_key(int seed);

std::string bytes_of(const std::filesystem::path& path);
void put_bytes(const std::filesystem::path& path, const std::string& bytes);
// Makes a file look as if it had not been used for so many seconds.
void age(const std::filesystem::path& path, double seconds);
std::size_t count_in(const std::filesystem::path& folder);

}  // namespace h3::test
