// Where a comparison takes a render from: a clip, or the folder of PNG frames that a render leaves on request, with
// the WAV beside it.
#pragma once

#include <filesystem>
#include <memory>

#include "media/image.h"
#include "media/sound.h"

namespace h3 {

class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // The next frame; false after the last.
  virtual bool next(Image& frame) = 0;
  // The sound; of length 0 where there is none.
  virtual Sound sound() const = 0;
};

// A folder is taken as frames (its *.png by name; for a folder X.frames the sound is X.wav beside it), a .png as one
// frame, anything else as a clip. Throws UserError naming the file.
std::unique_ptr<FrameSource> open_frames(const std::filesystem::path& path);

}  // namespace h3
