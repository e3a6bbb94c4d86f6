// Entries in use: whoever uses an entry holds a shared lock (flock) on its file, and a file is removed only under an
// exclusive one, by whoever gets it at once. A lock goes with its process, so a killed run leaves none behind.
#pragma once

#include <filesystem>
#include <optional>

namespace h3 {

class CacheLock {
 public:
  // A shared lock; nothing where there is no such file, or somebody is removing it. Where a file system has no locks,
  // the file is merely held open.
  static std::optional<CacheLock> share(const std::filesystem::path& file);
  ~CacheLock();
  CacheLock(CacheLock&& other) noexcept;
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  CacheLock& operator=(CacheLock&&) = delete;

 private:
  explicit CacheLock(int fd) : fd_(fd) {}
  int fd_;
};

// Removes a file that nobody uses. False where it is in use, or cannot be removed.
bool remove_unless_used(const std::filesystem::path& file);
// Whether somebody uses it.
bool is_used(const std::filesystem::path& file);

}  // namespace h3
