#include "checkpoint/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kUniqueDigits = 16;
constexpr std::string_view kTemporaryEnd = ".tmp.h5";

// Whether `file` is a name that unique_temporary_path made for a file of this stem.
bool is_temporary_of(const std::string& file, const std::string& stem) {
  const std::string head = "." + stem + ".";
  if (!file.starts_with(head) || !file.ends_with(kTemporaryEnd)) return false;
  if (file.size() != head.size() + kUniqueDigits + kTemporaryEnd.size()) return false;
  return file.find_first_not_of("0123456789abcdef", head.size()) == head.size() + kUniqueDigits;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw SceneError(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
}

void remove_in(const fs::path& folder, const std::string& name) {
  const CheckpointPaths paths = checkpoint_paths(folder, name);
  for (const fs::path& path : {paths.newest, paths.previous, paths.inputs}) remove_file(path);
  remove_leftovers(folder, name);
}

}  // namespace

CheckpointPaths checkpoint_paths(const fs::path& folder, const std::string& name) {
  return {folder / (name + ".inputs.h5"), folder / (name + ".checkpoint.h5"), folder / (name + ".checkpoint.prev.h5")};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

fs::path scratch_folder(const fs::path& scratch, const fs::path& folder) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(folder), error);
  return scratch / fmt::format("h3render-{}-{}", ::getuid(), hash_hex(absolute.string()).substr(0, kUniqueDigits));
}

void make_scratch_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  struct stat info {};
  const bool made = ::mkdir(folder.c_str(), 0700) == 0;
  const int reason = errno;
  if (!made && reason != EEXIST)
    throw SceneError(fmt::format("{}: cannot be made: {}", folder.string(), std::generic_category().message(reason)));
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    throw SceneError(fmt::format("{}: is not a folder of this user", folder.string()));
}

fs::path unique_temporary_path(const fs::path& path) {
  std::random_device random;
  const std::uint64_t unique = std::uint64_t{random()} << 32 | random();
  return path.parent_path() / fmt::format(".{}.{:016x}{}", path.stem().string(), unique, kTemporaryEnd);
}

void remove_leftovers(const fs::path& folder, const std::string& name) {
  const CheckpointPaths paths = checkpoint_paths(folder, name);
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (is_temporary_of(file, paths.newest.stem().string()) || is_temporary_of(file, paths.inputs.stem().string()))
      leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, error);
}

void remove_checkpoints(const fs::path& folder, const std::string& name, const fs::path& scratch) {
  remove_in(folder, name);
  if (scratch.empty()) return;
  const fs::path mine = scratch_folder(scratch, folder);
  remove_in(mine, name);
  std::error_code still_used;
  fs::remove(mine, still_used);
}

}  // namespace h3
