// What probing and reading of sounds share: the sound at its own rate, as long as it will be read. Only the .cpp files
// of this room include this.
#pragma once

#include <cstdint>
#include <filesystem>

#include "media/packet_scan.h"
#include "media/read_options.h"
#include "media/sound.h"

namespace h3 {

// Samples at `rate` within so many frames at 24 a second (spec/vae.md 18.4).
inline std::int64_t samples_in_frames(std::int64_t frames, int rate) {
  return static_cast<std::int64_t>(static_cast<double>(frames) / 24 * rate);
}

// Throws UserError naming the file for more than two channels unless they are to be mixed.
void check_channels(const std::filesystem::path& path, int channels, const ReadOptions& options);

// Throws UserError naming the file for a soundtrack that begins more than a minute after the first frame.
void check_sound_start(const std::filesystem::path& path, const ffmpeg::PacketScan& scan);

// Mono or stereo, from the clip's first frame on, at least the first `most_seconds` where there are so many; of no
// channels where the file has no sound.
Sound read_stored_sound(const std::filesystem::path& path, const ffmpeg::PacketScan& scan, const ReadOptions& options,
                        double most_seconds);

}  // namespace h3
