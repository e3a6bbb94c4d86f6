// A clip of any frame rate as 24 frames a second: each stored frame is shown from the slot nearest to its time until
// the next one's (spec/text.md 3.2), so that the clip runs at its true speed. Frames come one at a time, because a clip
// at its stored size need not fit in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "media/image.h"
#include "media/read_options.h"

namespace h3 {

class PacedClip {
 public:
  // Opens the file and reads its timestamps. Throws UserError naming it for what probe_media() refuses.
  explicit PacedClip(const std::filesystem::path& path, const ReadOptions& options = {});
  ~PacedClip();
  PacedClip(const PacedClip&) = delete;
  PacedClip& operator=(const PacedClip&) = delete;

  // Size as shown, with square pixels: its shape decides the canvas. next() gives frames upright in their stored size.
  int width() const;
  int height() const;

  // The frame of the next slot; false after the last. `repeated`, where given, tells that it is the one before again.
  bool next(Image& frame, bool* repeated = nullptr);

 private:
  class Pacer;
  std::unique_ptr<Pacer> pacer_;
};

// The first `most` frames at 24 a second (all where there are fewer), each stretched to width x height as Pillow's
// LANCZOS does.
std::vector<Image> read_clip_frames(const std::filesystem::path& path, const ReadOptions& options, std::int64_t most,
                                    int width, int height);

}  // namespace h3
