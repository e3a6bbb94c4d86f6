// Reads a clip back: frames as RGB and the sound as float32, one frame at a time so that a long clip need not fit in
// memory. For files that this program or a like tool wrote (MP4, MOV, Matroska); only local files are opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/sound.h"

namespace h3 {

struct ClipInfo {
  int width = 0, height = 0;
  std::int64_t frames = 0;  // as the container says; 0: it does not
  double frame_rate = 0;
  double video_seconds = 0, audio_seconds = 0;
  std::string video_codec, pixel_format, color_space, color_range, audio_codec;  // empty: no such stream
  int sample_rate = 0, channels = 0;
  std::map<std::string, std::string> tags;
};

class ClipReader {
 public:
  // Opens the file. Throws UserError naming it where it is no clip with a video stream.
  explicit ClipReader(const std::filesystem::path& path);
  ~ClipReader();
  ClipReader(const ClipReader&) = delete;
  ClipReader& operator=(const ClipReader&) = delete;

  const ClipInfo& info() const;
  // The next frame in order of presentation; false after the last. Throws UserError for damaged data.
  bool next(Image& frame);

 private:
  class Decoder;
  std::unique_ptr<Decoder> decoder_;
};

// The whole sound of a clip at its own rate and channel count, without the encoder's padding; of length 0 where there
// is no audio stream.
Sound read_clip_sound(const std::filesystem::path& path);

struct VideoFile {
  ClipInfo info;
  std::vector<Image> frames;
  Sound sound;
};
VideoFile read_clip(const std::filesystem::path& path);

}  // namespace h3
