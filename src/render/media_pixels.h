// The pixels and samples of a scene's media as the encoders take them, the same on every rank: the first rank reads the
// files and the others are sent what it made of them. Both encoders look at the same pixels (spec/text.md 3).
#pragma once

#include <cstdint>
#include <vector>

#include "compute/tensor.h"
#include "media/image.h"
#include "media/sound.h"
#include "render/scene_media.h"
#include "render/session.h"
#include "text/vision_input.h"

namespace h3 {

struct MediaPixels {
  std::vector<Image> frames;  // of the item's size, all that the text encoder may look at
  Sound sound;                // stereo at 32 kHz; of length 0 where there is none
};

// A picture put onto the item's size: stretched, or covering it and cut (spec/text.md 3.1).
Image fitted(const MediaItem& item, const Image& picture);

// Reads the files of one item. Throws UserError naming the file where it does not hold what its headers said.
MediaPixels read_media(const MediaItem& item, const ReadOptions& options);

// Collective. The media of a scene on every rank, empty where not `wanted`. Throws SceneError on every rank where one
// cannot be read.
std::vector<MediaPixels> share_media(Session& session, const Scene& scene, const std::vector<MediaItem>& items,
                                     const std::vector<bool>& wanted);

// What the vision tower is shown of the media, in the order of the presentation.
std::vector<VisionPixels> vision_pixels(const std::vector<MediaItem>& items, const std::vector<MediaPixels>& media);

}  // namespace h3
