#include "cache/samples.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <vector>

namespace h3::test {

namespace fs = std::filesystem;

std::string sample_key(int seed) {
  return fmt::format("{{\"seed\":{}}}", seed);
}

CacheEntry sample_entry(int seed, std::int64_t floats) {
  std::vector<float> values(static_cast<std::size_t>(floats));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(seed) + 0.25f * static_cast<float>(i);
  return {{sample_key(seed), "text", seed, 0.5 * seed}, HostArray::copy_of(values.data(), DType::f32, {1, floats})};
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void put_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void age(const fs::path& path, double seconds) {
  const auto ago = std::chrono::duration_cast<fs::file_time_type::duration>(std::chrono::duration<double>(seconds));
  fs::last_write_time(path, fs::file_time_type::clock::now() - ago);
}

std::size_t count_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace h3::test
