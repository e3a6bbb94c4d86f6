// The sound of a file as it is stored: float32 at its own rate and channels, on the file's clock, without the padding
// that encoders add before and after. FFmpeg decodes and converts sample formats, nothing else. Only the .cpp files of
// this room include this.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "media/container.h"
#include "media/sound.h"

namespace h3::ffmpeg {

struct DecodedSound {
  Sound sound;                      // channels 0: the file has none
  double start = 0;                 // of the first sample, in seconds on the file's clock
  std::vector<AVChannel> speakers;  // whom each channel is for
};

// Stops when so many seconds are decoded. A pause between packets of more than 0.1 s is silence. Throws UserError
// naming the file for damaged data and where rate or channels change within the sound.
DecodedSound decode_sound(const std::filesystem::path& path,
                          double most_seconds = std::numeric_limits<double>::infinity());

// More than two channels mixed to stereo: front and centre speakers and those at the side or back at -3 dB into their
// side, all scaled so that nothing clips, the low-frequency channel left out. Throws UserError, which `where` opens,
// for channels of unknown place.
Sound mixed_to_stereo(const DecodedSound& decoded, const std::string& where);

}  // namespace h3::ffmpeg
