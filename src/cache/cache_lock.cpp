#include "cache/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace h3 {

namespace fs = std::filesystem;

namespace {

// False where another holds a lock that excludes this one.
bool lock_at_once(int fd, int how) {
  return ::flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Whether an open file still has its name, and was not removed or replaced before it was locked.
bool has_name(int fd, const fs::path& file) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::lstat(file.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// Network file systems want an exclusive lock's file open for writing.
int open_to_exclude(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  return fd >= 0 ? fd : ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

}  // namespace

std::optional<CacheLock> CacheLock::share(const fs::path& file) {
  // Whoever excludes others does so for a moment.
  constexpr int kTries = 10;
  constexpr std::chrono::milliseconds kPause(5);
  for (int i = 0; i < kTries; ++i) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return std::nullopt;
    CacheLock lock(fd);
    const bool locked = lock_at_once(fd, LOCK_SH);
    if (locked && has_name(fd, file)) return lock;
    if (!locked) std::this_thread::sleep_for(kPause);
  }
  return std::nullopt;
}

CacheLock::~CacheLock() {
  if (fd_ >= 0) ::close(fd_);
}

CacheLock::CacheLock(CacheLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

bool remove_unless_used(const fs::path& file) {
  const int fd = open_to_exclude(file);
  if (fd < 0) return false;
  const bool removed = lock_at_once(fd, LOCK_EX) && has_name(fd, file) && ::unlink(file.c_str()) == 0;
  ::close(fd);
  return removed;
}

bool is_used(const fs::path& file) {
  const int fd = open_to_exclude(file);
  if (fd < 0) return false;
  const bool used = !lock_at_once(fd, LOCK_EX);
  ::close(fd);
  return used;
}

}  // namespace h3
