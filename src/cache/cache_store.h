// Entries in a folder, for any number of jobs at once: files are written whole under a temporary name and renamed, read
// under a shared lock, and removed only where nobody uses them, those first that were not used for the longest time.
// Writers of one entry write the same, so who comes last does no harm.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache_entry.h"
#include "cache/cache_lock.h"

namespace h3 {

// A file of a cache folder that is an entry by its name.
struct CacheFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  double last_used = 0;  // seconds of the wall's clock
};
// Those used last first; none where there is no such folder. Throws UserError for a folder that cannot be read.
std::vector<CacheFile> cache_files(const std::filesystem::path& folder);

struct Cleared {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t kept = 0;  // in use, or not removable
};
// Removes every entry that nobody uses, and what killed writers left. Other files stay. Throws UserError as above.
Cleared clear_cache(const std::filesystem::path& folder);

class CacheStore {
 public:
  // The folder is made with its first entry.
  CacheStore(std::filesystem::path folder, std::uint64_t most_bytes);

  // An entry with the lock under which it stays.
  struct Held {
    CacheEntry entry;
    CacheLock lock;
  };
  // Nothing where there is none. `damage` then says why where there is a file that cannot serve; it is removed.
  std::optional<Held> find(const std::string& key, std::string& damage) const;

  // Writes an entry and makes room for it. Throws SceneError naming file and reason; nothing is changed then.
  void keep(const CacheEntry& entry) const;

  std::filesystem::path path_of(const std::string& key) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void make_room() const;

  std::filesystem::path folder_;
  std::uint64_t most_bytes_;
};

}  // namespace h3
