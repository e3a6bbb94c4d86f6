// The contact sheet of a render: frames over time in a grid with their times, under them the waveform of both
// channels. One look tells whether a clip shows and sounds like its prompt. Frames are taken as they pass by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "media/image.h"
#include "media/sound.h"

namespace h3 {

class ContactSheet {
 public:
  // For a clip of `frames` frames of width x height; at most `cells` of them are shown, the first and last included.
  ContactSheet(int width, int height, std::int64_t frames, int cells = 12);

  // Whether the sheet shows this frame; add() takes only those (others are ignored).
  bool shows(std::int64_t frame) const;
  void add(std::int64_t frame, std::span<const std::uint8_t> rgb);
  // The sheet so far; frames not added stay dark.
  Image draw(const Sound& sound) const;

 private:
  int width_, height_;
  std::vector<std::int64_t> shown_;  // frame numbers, rising
  std::vector<Image> cells_;
};

// `image` scaled down to width x height (not larger than it) by averaging areas.
Image shrunk(const Image& image, int width, int height);

}  // namespace h3
