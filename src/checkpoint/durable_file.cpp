#include "checkpoint/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "checkpoint/paths.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw SceneError(fmt::format("{}: cannot be {}: {}", path.string(), what, std::generic_category().message(errno)));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, unsigned mode = 0) : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Some network file systems report a full disk only here.
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void sync_folder(const fs::path& path) {
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  const Descriptor fd(folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder; the renames are then as durable as they make them.
  if (fd.get() < 0 || (::fsync(fd.get()) != 0 && errno != EINVAL)) fail(folder, "synced");
}

void write_temporary(const DurableFile& file, const fs::path& temporary, std::string_view bytes) {
  Descriptor fd(temporary, O_WRONLY | O_CREAT | O_EXCL, file.mode);
  if (fd.get() < 0) fail(file.path, "written");
  file.hooks.reach("opened");
  const std::size_t half = bytes.size() / 2;
  if (!write_all(fd.get(), bytes.substr(0, half))) fail(file.path, "written");
  file.hooks.reach("half");
  if (!write_all(fd.get(), bytes.substr(half))) fail(file.path, "written");
  file.hooks.reach("written");
  if (::fsync(fd.get()) != 0 || fd.close() != 0) fail(file.path, "written");
  file.hooks.reach("synced");
}

// Between the two renames the last file stands under its second name, so one whole file always has a name.
void give_names(const DurableFile& file, const fs::path& temporary) {
  if (!file.previous.empty()) {
    if (::rename(file.path.c_str(), file.previous.c_str()) != 0 && errno != ENOENT) fail(file.path, "renamed");
    file.hooks.reach("kept");
  }
  if (::rename(temporary.c_str(), file.path.c_str()) != 0) fail(file.path, "written");
  file.hooks.reach("renamed");
}

}  // namespace

void write_durably(const DurableFile& file, std::string_view bytes) {
  const fs::path temporary = unique_temporary_path(file.path);
  try {
    write_temporary(file, temporary, bytes);
    if (file.may_commit && !file.may_commit())
      throw SceneError(fmt::format("{}: not written, since another run has taken the scene over", file.path.string()));
    give_names(file, temporary);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  sync_folder(file.path);
  file.hooks.reach("done");
}

}  // namespace h3
