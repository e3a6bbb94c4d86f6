// Several renders one after another as one clip. Frames and sound are decoded and encoded again: each render has its
// own encoder settings and its AAC stream begins with padding, so that packets put behind one another would neither
// play everywhere nor stay in time. A render that kept its PNG frames and WAV is joined from those, without a loss.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "media/mp4.h"

namespace h3 {

// A render to join: where its frames are (a clip, or a folder of PNG frames) and where its sound is (a clip or a WAV).
struct JoinPart {
  std::string name;
  std::filesystem::path frames, sound;
};

// What a render left in a folder: NAME.frames and NAME.wav where they are there, else NAME.mp4. Throws UserError where
// there is neither.
JoinPart find_part(const std::filesystem::path& folder, const std::string& name);
// The same for a file or folder of frames that is named itself.
JoinPart part_of(const std::filesystem::path& path);

struct JoinReport {
  int width = 0, height = 0;
  std::int64_t frames = 0;
};

// Writes the parts into `path`; each part's sound is cut, or filled up with silence, to the length of its frames, so
// that all of them start in time. `options` without size. Throws UserError, before anything is written, for a part of
// another size than the first, another rate than 24 frames a second, or a sound that is not stereo at 32 kHz;
// SceneError where the file cannot be written.
JoinReport join(const std::vector<JoinPart>& parts, const std::filesystem::path& path, Mp4Options options);

}  // namespace h3
