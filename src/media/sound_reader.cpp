#include "media/sound_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/packet_scan.h"
#include "media/resample.h"
#include "media/sound_decode.h"
#include "media/stored_sound.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

void check_channels(const fs::path& path, int channels, const ReadOptions& options) {
  if (channels > 2 && !options.downmix)
    throw UserError(
        path.string(), "", "",
        fmt::format("has {} channels; expected mono or stereo (downmix=true mixes them to stereo)", channels));
}

// Sound moved by whole samples: silence before it, or its beginning cut off.
static Sound shifted(const Sound& sound, std::int64_t by) {
  const auto old_length = static_cast<std::int64_t>(sound.length());
  const std::int64_t length = std::max<std::int64_t>(0, old_length + by);
  Sound result{sound.rate, sound.channels, std::vector<float>(static_cast<std::size_t>(length * sound.channels))};
  const std::int64_t cut = std::clamp<std::int64_t>(-by, 0, old_length), silence = std::max<std::int64_t>(0, by);
  for (int c = 0; c < sound.channels; ++c)
    std::copy(sound.channel(c).begin() + cut, sound.channel(c).end(), result.samples.begin() + c * length + silence);
  return result;
}

void check_sound_start(const fs::path& path, const PacketScan& scan) {
  constexpr double longest_offset = 60;
  const double offset = scan.sound_start - scan.video_start;
  if (scan.frames.size() > 0 && offset > longest_offset)
    throw UserError(path.string(), "", "",
                    fmt::format("has a sound that begins {:.0f} s after its first frame", offset));
}

// Where the sound begins after the clip's first frame, in samples; in a file without frames, where it begins before the
// file's time zero, which is an encoder's padding. A difference within the rounding of the file's clock is none.
static std::int64_t offset_of(const PacketScan& scan, const DecodedSound& decoded) {
  const double offset = scan.frames.size() > 0 ? decoded.start - scan.video_start : std::min(0.0, decoded.start);
  return std::abs(offset) <= 1.5 * scan.sound_clock ? 0 : std::llround(offset * decoded.sound.rate);
}

Sound read_stored_sound(const fs::path& path, const PacketScan& scan, const ReadOptions& options, double most_seconds) {
  check_sound_start(path, scan);
  const double cut = std::max(0.0, (scan.frames.size() > 0 ? scan.video_start : 0) - scan.sound_start);
  const DecodedSound decoded = decode_sound(path, most_seconds + cut);
  if (decoded.sound.channels == 0) return decoded.sound;
  check_channels(path, decoded.sound.channels, options);
  const Sound sound = decoded.sound.channels > 2 ? mixed_to_stereo(decoded, path.string()) : decoded.sound;
  return shifted(sound, offset_of(scan, decoded));
}

Sound read_sound(const fs::path& path, const ReadOptions& options, std::optional<std::int64_t> frames) {
  const double most_seconds = frames ? static_cast<double>(*frames) / 24 : std::numeric_limits<double>::infinity();
  Sound sound = read_stored_sound(path, scan_packets(Container(path)), options, most_seconds);
  if (sound.channels == 0) throw UserError(path.string(), "", "", "holds no sound");
  if (frames) sound = trimmed(sound, static_cast<std::size_t>(samples_in_frames(*frames, sound.rate)));
  if (sound.length() == 0) throw UserError(path.string(), "", "", "holds no sound after the clip's first frame");
  sound = resampled(sound, 32000);
  if (sound.channels == 1) {
    sound.channels = 2;
    const std::size_t length = sound.samples.size();
    sound.samples.resize(2 * length);
    std::copy_n(sound.samples.begin(), length, sound.samples.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return sound;
}

}  // namespace h3
