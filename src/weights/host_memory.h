// How much memory this host can still give: what the kernel calls available, or less where a control group (a batch
// job, a container) sets a limit. Measured before large blocks are asked for, since exceeding a limit kills the
// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace h3 {

struct HostMemory {
  std::uint64_t total = 0, available = 0;  // bytes
  std::string limit;                       // what bounds it, "the host" or the control group's name
};
HostMemory host_memory();

// Bytes that a file system still takes; 0 where it cannot be asked.
std::uint64_t free_space(const std::filesystem::path& folder);

// Bytes in words: "61.7 GiB".
std::string bytes_in_words(std::uint64_t bytes);

}  // namespace h3
