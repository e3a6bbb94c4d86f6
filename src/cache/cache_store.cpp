#include "cache/cache_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/durable_file.h"
#include "checkpoint/hdf5_library.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNameDigits = 32;
constexpr double kAbandoned = 3600;  // seconds after which nobody writes a temporary file any more

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_entry_name(const std::string& file) {
  return file.size() == kNameDigits + 3 && file.ends_with(".h5") &&
         is_hex(std::string_view(file).substr(0, kNameDigits));
}

// What unique_temporary_path makes of an entry's name.
bool is_temporary_name(const std::string& file) {
  return file.starts_with(".") && file.ends_with(".tmp.h5") && file.size() > kNameDigits + 1 &&
         file[kNameDigits + 1] == '.' && is_hex(std::string_view(file).substr(1, kNameDigits));
}

std::optional<CacheFile> looked_at(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  const double used = static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
  return CacheFile{path, static_cast<std::uint64_t>(info.st_size), used};
}

std::vector<CacheFile> files_of(const fs::path& folder, bool (*wanted)(const std::string&)) {
  std::vector<CacheFile> files;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error))
    if (wanted(it->path().filename().string()))
      if (const auto file = looked_at(it->path())) files.push_back(*file);
  if (error) throw UserError(folder.string(), "", "", "cannot be read: " + error.message());
  return files;
}

void remove_abandoned(const fs::path& folder) {
  const double now = wall_seconds();
  for (const CacheFile& file : files_of(folder, is_temporary_name))
    if (now - file.last_used > kAbandoned) remove_unless_used(file.path);
}

// Private to the user, whoever may look into the folders above.
void make_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::create_directories(folder.parent_path(), ignored);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw SceneError(fmt::format("{}: cannot be made: {}", folder.string(), std::generic_category().message(errno)));
}

void mark_used(const fs::path& path) {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

std::vector<CacheFile> cache_files(const fs::path& folder) {
  std::vector<CacheFile> files = files_of(folder, is_entry_name);
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.last_used > b.last_used; });
  return files;
}

Cleared clear_cache(const fs::path& folder) {
  Cleared cleared;
  for (const CacheFile& file : cache_files(folder)) {
    if (remove_unless_used(file.path)) {
      ++cleared.files;
      cleared.bytes += file.bytes;
    } else {
      ++cleared.kept;
    }
  }
  remove_abandoned(folder);
  return cleared;
}

CacheStore::CacheStore(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

fs::path CacheStore::path_of(const std::string& key) const {
  return folder_ / (hash_hex(key) + ".h5");
}

std::optional<CacheStore::Held> CacheStore::find(const std::string& key, std::string& damage) const {
  const fs::path path = path_of(key);
  {
    auto lock = CacheLock::share(path);
    if (!lock) return std::nullopt;
    try {
      CacheEntry entry = parse_entry(path);
      if (entry.facts.key == key) {
        mark_used(path);
        return Held{std::move(entry), std::move(*lock)};
      }
      damage = fmt::format("{}: holds another entry", path.string());
    } catch (const Hdf5Failure& e) {
      damage = fmt::format("{}: is damaged: {}", path.string(), e.what());
    } catch (const UserError& e) {
      damage = e.what();
    }
  }
  remove_unless_used(path);
  return std::nullopt;
}

void CacheStore::keep(const CacheEntry& entry) const {
  const std::string bytes = compose_entry(entry);
  if (bytes.size() > most_bytes_)
    throw SceneError(fmt::format("an entry of {} bytes does not fit into a cache of {}", bytes.size(), most_bytes_));
  make_folder(folder_);
  DurableFile file;
  file.path = path_of(entry.facts.key);
  file.mode = 0600;
  write_durably(file, bytes);
  make_room();
}

void CacheStore::make_room() const {
  try {
    remove_abandoned(folder_);
    std::uint64_t bytes = 0;
    for (const CacheFile& file : cache_files(folder_)) {
      bytes += file.bytes;
      // What is in use keeps its place, and goes with a later entry.
      if (bytes > most_bytes_ && remove_unless_used(file.path)) bytes -= file.bytes;
    }
  } catch (const UserError& e) {
    throw SceneError(e.what());
  }
}

}  // namespace h3
