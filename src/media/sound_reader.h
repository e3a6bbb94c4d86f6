// Sounds and soundtracks as the audio encoder takes them: stereo at 32 kHz, from the first frame of a clip on, with no
// delay (spec/vae.md 18.4). FFmpeg only decodes; channels and rate are converted here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "media/read_options.h"
#include "media/sound.h"

namespace h3 {

// The sound of a file, cut to the length of `frames` at 24 a second, at its own rate, before it is resampled. Mono is
// given to both channels. In a clip, sound before the first frame is cut off, and sound that begins later follows
// silence. Throws UserError naming the file for what is damaged or has no sound, and for more than two channels unless
// they are to be mixed.
Sound read_sound(const std::filesystem::path& path, const ReadOptions& options = {},
                 std::optional<std::int64_t> frames = std::nullopt);

}  // namespace h3
