// Where programs of this user keep what can be made again.
#pragma once

#include <filesystem>

namespace h3 {

// $XDG_CACHE_HOME/h3render, or ~/.cache/h3render; empty where neither is known. Not made here.
std::filesystem::path user_cache();

}  // namespace h3
