// The door that every media file comes through: a regular local file with something in it, and nothing else.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace h3 {

// The first bytes of a file (all where it is shorter). Throws UserError naming it where it is a URL, missing, a folder,
// a device or pipe, empty or unreadable.
std::string head_of_local_file(const std::filesystem::path& path, std::size_t most);

}  // namespace h3
