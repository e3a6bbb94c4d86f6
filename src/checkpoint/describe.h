// What stands in an inputs or checkpoint file, for `inspect`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/hdf5_library.h"

namespace h3 {

// {"format", "schema", "program_version", "step", ..., "datasets": {NAME: {"shape", "dtype", "axes", "units",
// "meaning", "xxh3_128"}}, "damage": null or a text}; every dataset is read and its checksum verified. Throws UserError
// where the file is none of ours, and for one too damaged to be opened.
nlohmann::ordered_json describe_checkpoint_file(const std::filesystem::path& path, FileLocking locking);

}  // namespace h3
