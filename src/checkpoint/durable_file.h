// A file that is whole under its name at every instant, also after a kill or a power cut: written under a temporary
// name, synced, renamed, the folder synced. The file that stood there before can be kept under a second name.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "checkpoint/write_hooks.h"

namespace h3 {

struct DurableFile {
  std::filesystem::path path;
  std::filesystem::path previous;    // the last file gets this name; empty: it is replaced
  std::function<bool()> may_commit;  // asked before names change; false: throws SceneError and changes nothing
  WriteHooks hooks;
  unsigned mode = 0644;  // less what the process masks
};

// Throws SceneError naming the file and the system's reason (disk full, read-only file system); the temporary file is
// gone then, and the files of before are as they were.
void write_durably(const DurableFile& file, std::string_view bytes);

}  // namespace h3
