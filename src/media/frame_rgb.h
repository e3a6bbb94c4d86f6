// Decoded frames as 8-bit RGB: the matrix and range that the file states (untagged: BT.601, limited, as FFmpeg takes
// it), 10 and more bits rounded to 8, alpha dropped or laid over white. What would need another transfer curve or gamut
// (HDR, BT.2020) is refused by name. Only the .cpp files of this room include this.
#pragma once

#include <string>

#include "media/ffmpeg.h"
#include "media/image.h"
#include "media/read_options.h"

namespace h3::ffmpeg {

// Throws UserError, which `where` opens, for PQ, HLG, Dolby Vision's own colours, BT.2020 and matrices that swscale
// does not know.
void check_colours(const AVStream& stream, const std::string& where);

class FrameConverter {
 public:
  FrameConverter(std::string where, const ReadOptions& options) : where_(std::move(where)), options_(options) {}
  // Resizes `image` to the frame. Throws UserError as check_colours().
  void convert(const AVFrame& frame, Image& image);

 private:
  void prepare(const AVFrame& frame, AVPixelFormat target);

  std::string where_;
  ReadOptions options_;
  Scaler scaler_;
  int width_ = 0, height_ = 0, format_ = -1, matrix_ = -1, range_ = -1;
};

}  // namespace h3::ffmpeg
