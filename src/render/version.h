// What this program is built from, in words.
#pragma once

#include <string>

namespace h3 {

// "h3render 0.1.0" and one line a library.
std::string version_text();
// "0.1.0".
std::string program_version();

}  // namespace h3
