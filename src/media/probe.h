// What a media file is, told from its headers, the timestamps of its packets and, for its sound, by decoding at most a
// minute: a scene's rules need sizes, frame counts and lengths before anything is loaded. No picture is decoded.
// Whatever cannot be read as it should be is refused here, by name, as the readers would refuse it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "media/read_options.h"

namespace h3 {

enum class MediaKind : std::uint8_t { picture, clip, sound };

struct MediaFacts {
  MediaKind kind = MediaKind::picture;
  std::string format;          // "PNG", "JPEG", "WebP", or FFmpeg's name of the container
  int width = 0, height = 0;   // as shown: turned upright, with square pixels; 0 for sounds
  double frame_rate = 0;       // of a clip as stored, on average
  std::int64_t frames = 0;     // of a clip at 24 a second (spec/text.md 3.2)
  int channels = 0, rate = 0;  // of a sound or a clip's soundtrack; 0: there is none
  std::int64_t samples = 0;    // of the sound at `rate` and channel, from the clip's first frame on

  bool has_sound() const { return channels > 0; }
  double seconds() const;        // of the frames, or of a sound
  double sound_seconds() const;  // of the sound or soundtrack
};

// "picture", "clip", "sound"
std::string_view name_of(MediaKind kind);

// Throws UserError naming the file where it is missing, empty, unreadable, truncated, no local file of a kind that is
// read (a playlist, HEIC, CMYK, HDR, more than two channels without downmix, ...), or holds no frame or sample.
MediaFacts probe_media(const std::filesystem::path& path, const ReadOptions& options = {});

// Samples at 32 kHz that read_sound() will give for the same `frames` (spec/vae.md 18.4).
std::int64_t sound_length(const MediaFacts& facts, std::optional<std::int64_t> frames = std::nullopt);

}  // namespace h3
