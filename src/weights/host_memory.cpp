#include "weights/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace h3 {

namespace fs = std::filesystem;

// The number behind `key` in a file of "key number" lines, or the file's only number where the key is empty.
static std::optional<std::uint64_t> number_in(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!key.empty() && (!(words >> word) || word != key)) continue;
    std::uint64_t value = 0;
    if (words >> value) return value;
    return std::nullopt;  // "max"
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *used, *cache_key;
};

// Lowers `memory` to what the control group at `path` and those above it, up to `mount`, still allow.
static void apply_groups(const fs::path& mount, std::string path, const GroupFiles& files, HostMemory& memory) {
  for (;;) {
    const fs::path group = mount / fs::path(path).relative_path();
    const auto limit = number_in(group / files.limit, ""), used = number_in(group / files.used, "");
    if (limit && used && *limit < memory.total) {
      // Pages of files that were read count as used but are given back when needed.
      const std::uint64_t cache = number_in(group / "memory.stat", files.cache_key).value_or(0);
      const std::uint64_t held = *used - std::min(*used, cache);
      const std::uint64_t left = *limit - std::min(*limit, held);
      if (left < memory.available) memory = {memory.total, left, "control group " + group.string()};
    }
    if (path.empty() || path == "/") return;
    path = fs::path(path).parent_path().string();
  }
}

HostMemory host_memory() {
  HostMemory memory;
  memory.total = number_in("/proc/meminfo", "MemTotal:").value_or(0) * 1024;
  memory.available = number_in("/proc/meminfo", "MemAvailable:").value_or(memory.total / 1024) * 1024;
  memory.limit = "the host";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty())
      apply_groups("/sys/fs/cgroup", path, {"memory.max", "memory.current", "inactive_file"}, memory);
    else if (controllers == "memory")
      apply_groups("/sys/fs/cgroup/memory", path,
                   {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}, memory);
  }
  return memory;
}

std::uint64_t free_space(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? 0 : static_cast<std::uint64_t>(space.available);
}

std::string bytes_in_words(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 0x1p30) return fmt::format("{:.1f} GiB", value / 0x1p30);
  if (value >= 0x1p20) return fmt::format("{:.1f} MiB", value / 0x1p20);
  return fmt::format("{} bytes", bytes);
}

}  // namespace h3
