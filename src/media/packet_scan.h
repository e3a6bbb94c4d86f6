// One pass over the packets of a file without decoding any: when its frames are shown, where its sound begins and ends,
// and whether it holds what its header promises. Only the .cpp files of this room include this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "media/container.h"
#include "media/frame_times.h"

namespace h3::ffmpeg {

struct PacketScan {
  std::vector<std::int64_t> frame_ticks;  // of the video's frames, ascending; empty where packets carry no times
  FrameTimes frames;                      // of none where there is no video
  double video_start = 0;                 // seconds on the file's clock
  double sound_start = 0, sound_end = 0;  // the same
  double sound_clock = 0;                 // seconds of a tick of the sound's clock
};

// Reads all packets of a newly opened file. Throws UserError naming it where it is damaged or ends before its time.
PacketScan scan_packets(const Container& file);

}  // namespace h3::ffmpeg
