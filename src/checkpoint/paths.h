// Where a scene's checkpoint files are, and how they go when they are no longer needed.
#pragma once

#include <filesystem>
#include <string>

namespace h3 {

struct CheckpointPaths {
  std::filesystem::path inputs;    // NAME.inputs.h5
  std::filesystem::path newest;    // NAME.checkpoint.h5
  std::filesystem::path previous;  // NAME.checkpoint.prev.h5
};
CheckpointPaths checkpoint_paths(const std::filesystem::path& folder, const std::string& name);

// Whether anything has this name, also a link that leads nowhere.
bool is_there(const std::filesystem::path& path);

// The folder below `scratch` that stands for the output folder `folder`: private to the user, and another one for each
// output folder, so that jobs may share a scratch disk.
std::filesystem::path scratch_folder(const std::filesystem::path& scratch, const std::filesystem::path& folder);
// Makes it, mode 0700. Throws SceneError.
void make_scratch_folder(const std::filesystem::path& folder);

// A name for writing the file `path` under before it gets its own: hidden, in the same folder, never used twice.
std::filesystem::path unique_temporary_path(const std::filesystem::path& path);

// Removes what killed writers of these files left behind under temporary names. Only for the holder of the claim.
void remove_leftovers(const std::filesystem::path& folder, const std::string& name);

// Removes a scene's checkpoint files and leftovers in `folder`, and in `scratch` unless it is empty: checkpoints first,
// so that a kill in between leaves inputs without checkpoints, which is a scene that has not begun. Throws SceneError
// for a file that cannot be removed.
void remove_checkpoints(const std::filesystem::path& folder, const std::string& name,
                        const std::filesystem::path& scratch = {});

}  // namespace h3
