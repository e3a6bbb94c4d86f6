// What this program is built from, in words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compute/machine.h"

namespace h3 {

// "h3render 0.1.0" and one line a library.
std::string version_text();
// "0.1.0".
std::string program_version();
// Of what a render passes through: {"compute": those of the machine, its driver among them, "mpi", "hdf5", "ffmpeg"}.
nlohmann::ordered_json library_versions(const Machine& machine);

}  // namespace h3
