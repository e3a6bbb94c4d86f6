// Files that are never half written: whole reads, and writes to a temporary name that are synced and renamed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace h3 {

// Reads a whole file. Throws UserError naming the file when it is missing, a folder or unreadable.
std::string read_file(const std::filesystem::path& path);

// Writes `content` under a temporary name in the same folder, fsyncs, renames over `path` and fsyncs the folder.
// Throws SceneError naming the file and the system's reason (disk full, read-only) and removes the temporary file.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// The temporary name that a file is written under before it gets its final one: hidden, and unique to the process.
std::filesystem::path temporary_path_for(const std::filesystem::path& path);

// Removes what killed processes left of `NAME.*` and `NAME.MIDDLE.*` (MIDDLE one of `middles`) under temporary names.
// Only for whoever alone may write files of that name.
void remove_temporaries(const std::filesystem::path& folder, const std::string& name,
                        std::span<const std::string_view> middles);

// Gives a finished temporary file its final name: fsync, rename, fsync of the folder. Throws SceneError.
void commit_file(const std::filesystem::path& temporary, const std::filesystem::path& path);

}  // namespace h3
