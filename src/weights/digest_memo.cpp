#include "weights/digest_memo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/user_cache.h"

namespace h3 {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostEntries = 256;

DigestMemo::DigestMemo(const fs::path& folder) {
  const fs::path place = folder.empty() ? user_cache() : folder;
  if (!place.empty()) file_ = place / "digests.json";
}

std::string DigestMemo::key(const std::string& what, const std::vector<SafetensorsFile>& files) {
  using namespace std::chrono;
  const auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  std::string text = what + "\n";
  for (const SafetensorsFile& f : files) {
    const FileStamp& s = f.stamp();
    if (s.mtime_ns > now - 2'000'000'000) return "";
    text += fmt::format("{} {} {} {}\n", s.device, s.inode, s.size, s.mtime_ns);
  }
  return hash_hex(text);
}

static json read_entries(const fs::path& file) {
  try {
    const json entries = json::parse(read_file(file));
    return entries.is_array() ? entries : json::array();
  } catch (const std::exception&) {
    return json::array();
  }
}

std::string DigestMemo::find(const std::string& key) const {
  if (file_.empty() || key.empty()) return "";
  for (const json& e : read_entries(file_))
    if (e.is_array() && e.size() == 2 && e[0] == key && e[1].is_string() && e[1].get<std::string>().size() == 32)
      return e[1];
  return "";
}

void DigestMemo::remember(const std::string& key, const std::string& digest) const {
  if (file_.empty() || key.empty()) return;
  json entries = read_entries(file_);
  entries.push_back({key, digest});
  while (entries.size() > kMostEntries) entries.erase(entries.begin());
  std::error_code ec;
  fs::create_directories(file_.parent_path(), ec);
  const fs::path temporary = temporary_path_for(file_);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  const std::string text = entries.dump(0);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  try {
    if (written) commit_file(temporary, file_);
  } catch (const SceneError&) {
    // Not remembered; the digest is computed again next time.
  }
  fs::remove(temporary, ec);
}

}  // namespace h3
