// Remembers digests of files by what tells their versions apart: device, inode, size and time of change. One private
// file (mode 0600) for all models of a user.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace h3 {

class DigestMemo {
 public:
  // `folder` empty: the user's cache folder. Nothing here throws: a memo that cannot be read or written is an empty
  // one.
  explicit DigestMemo(const std::filesystem::path& folder);

  // The key of a digest of `what` over these files; empty where the files are so young that a later change could leave
  // the same stamps.
  static std::string key(const std::string& what, const std::vector<SafetensorsFile>& files);

  // "" when unknown.
  std::string find(const std::string& key) const;
  void remember(const std::string& key, const std::string& digest) const;

 private:
  std::filesystem::path file_;
};

}  // namespace h3
