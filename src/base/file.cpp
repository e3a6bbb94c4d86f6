#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace h3 {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) throw UserError(path.string(), "", "", "is a folder, expected a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path.string(), "", "", fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw UserError(path.string(), "", "", "cannot be read to its end");
  return content;
}

fs::path temporary_path_for(const fs::path& path) {
  return path.parent_path() / fmt::format(".{}.{}.tmp{}", path.stem().string(), ::getpid(), path.extension().string());
}

// Whether `file` is `.STEM.DIGITS.tmp` with any extension.
static bool is_temporary_of(const std::string& file, const std::string& stem) {
  const std::string start = "." + stem + ".";
  if (!file.starts_with(start)) return false;
  const auto end = file.find_first_not_of("0123456789", start.size());
  return end != std::string::npos && end > start.size() && file.compare(end, 4, ".tmp") == 0;
}

void remove_temporaries(const fs::path& folder, const std::string& name, std::span<const std::string_view> middles) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    bool ours = is_temporary_of(file, name);
    for (const std::string_view middle : middles)
      ours = ours || is_temporary_of(file, name + "." + std::string(middle));
    if (ours) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, error);
}

static void sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags);
  if (fd < 0) throw SceneError(fmt::format("{}: cannot be opened to sync: {}", path.string(), std::strerror(errno)));
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems refuse to sync a folder; the rename is then as durable as they make it.
  if (rc != 0 && !(error == EINVAL && (flags & O_DIRECTORY)))
    throw SceneError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(error)));
}

void commit_file(const fs::path& temporary, const fs::path& path) {
  sync_path(temporary, O_RDONLY);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    throw SceneError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  const fs::path folder = path.parent_path();
  sync_path(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  const fs::path temporary = temporary_path_for(path);
  try {
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) throw SceneError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
    std::size_t done = 0;
    while (done < content.size()) {
      const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = errno;
        ::close(fd);
        throw SceneError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(error)));
      }
      done += static_cast<std::size_t>(n);
    }
    ::close(fd);
    commit_file(temporary, path);
  } catch (...) {
    std::error_code ec;
    fs::remove(temporary, ec);
    throw;
  }
}

}  // namespace h3
