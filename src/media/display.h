// How a clip's frames are to be shown: turned as its display matrix says, with square pixels. Only the .cpp files of
// this room include this.
#pragma once

#include <string>

#include "media/ffmpeg.h"
#include "media/orientation.h"

namespace h3::ffmpeg {

struct DisplaySize {
  int width = 0, height = 0;  // upright; the pixel aspect stretches the width
  Orientation orientation = Orientation::as_stored;
};

// Throws UserError, which `where` opens, for a size of zero and for a matrix that is no quarter turn or mirroring.
DisplaySize display_of(const AVStream& stream, const std::string& where);

}  // namespace h3::ffmpeg
