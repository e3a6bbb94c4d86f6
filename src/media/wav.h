// WAV files with float32 samples: the exact PCM of a render, for other tools and for comparisons.
#pragma once

#include <filesystem>

#include "media/sound.h"

namespace h3 {

// Writes under a temporary name, then renames. Throws SceneError naming the file (also for more than 4 GB).
void write_wav(const std::filesystem::path& path, const Sound& sound);

// Reads a float32 WAV file of any rate and channel count. Throws UserError naming the file for anything else.
Sound read_wav(const std::filesystem::path& path);

}  // namespace h3
