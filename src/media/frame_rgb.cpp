#include "media/frame_rgb.h"

extern "C" {
#include <libavutil/dovi_meta.h>
#include <libavutil/pixdesc.h>
}

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "media/still.h"

namespace h3::ffmpeg {

namespace {

struct Colours {
  AVColorPrimaries primaries;
  AVColorTransferCharacteristic transfer;
  AVColorSpace matrix;
};

void check(const Colours& c, const std::string& where) {
  const auto refuse = [&](const std::string& kind) {
    throw UserError(where, "", "",
                    fmt::format("has {} colours; expected SDR in BT.709 or BT.601 (convert it first)", kind));
  };
  if (c.transfer == AVCOL_TRC_SMPTE2084) refuse("HDR (PQ)");
  if (c.transfer == AVCOL_TRC_ARIB_STD_B67) refuse("HDR (HLG)");
  if (c.primaries == AVCOL_PRI_BT2020) refuse("BT.2020 wide-gamut");
  switch (c.matrix) {
    case AVCOL_SPC_YCGCO:
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL:
    case AVCOL_SPC_SMPTE2085:
    case AVCOL_SPC_CHROMA_DERIVED_NCL:
    case AVCOL_SPC_CHROMA_DERIVED_CL:
    case AVCOL_SPC_ICTCP:
      refuse(av_color_space_name(c.matrix));
      break;
    default:
      break;
  }
}

bool is_full_range(const AVFrame& frame) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
      return true;
    default:
      return frame.color_range == AVCOL_RANGE_JPEG;
  }
}

}  // namespace

void check_colours(const AVStream& stream, const std::string& where) {
  const AVCodecParameters& p = *stream.codecpar;
  check({p.color_primaries, p.color_trc, p.color_space}, where);
  const std::span<const std::uint8_t> data = side_data(stream, AV_PKT_DATA_DOVI_CONF);
  if (!data.empty() &&
      reinterpret_cast<const AVDOVIDecoderConfigurationRecord*>(data.data())->dv_bl_signal_compatibility_id == 0)
    throw UserError(where, "", "",
                    "has Dolby Vision's own colours; expected SDR in BT.709 or BT.601 (convert it first)");
}

void FrameConverter::prepare(const AVFrame& f, AVPixelFormat target) {
  const int range = is_full_range(f) ? 1 : 0;
  if (scaler_ && f.width == width_ && f.height == height_ && f.format == format_ && f.colorspace == matrix_ &&
      range == range_)
    return;
  check({f.color_primaries, f.color_trc, f.colorspace}, where_);
  const int flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT;
  scaler_.reset(sws_getContext(f.width, f.height, static_cast<AVPixelFormat>(f.format), f.width, f.height, target,
                               flags, nullptr, nullptr, nullptr));
  check_read(scaler_ ? 0 : AVERROR(EINVAL), where_, "sws_getContext");
  const int* from = sws_getCoefficients(f.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_ITU601 : f.colorspace);
  // Negative where there is nothing to set: an RGB source.
  sws_setColorspaceDetails(scaler_.get(), from, range, from, 1, 0, 1 << 16, 1 << 16);
  width_ = f.width;
  height_ = f.height;
  format_ = f.format;
  matrix_ = f.colorspace;
  range_ = range;
}

void FrameConverter::convert(const AVFrame& frame, Image& image) {
  const AVPixFmtDescriptor* layout = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool has_alpha = layout && (layout->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  const bool keep_alpha = has_alpha && options_.alpha_on_white;
  const int pixel_bytes = keep_alpha ? 4 : 3;
  prepare(frame, keep_alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24);
  const std::size_t pixels = static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height);
  image.width = frame.width;
  image.height = frame.height;
  image.rgb.resize(pixels * 3);
  std::vector<std::uint8_t> rgba(keep_alpha ? pixels * 4 : 0);
  std::uint8_t* const target[4] = {keep_alpha ? rgba.data() : image.rgb.data(), nullptr, nullptr, nullptr};
  const int stride[4] = {pixel_bytes * frame.width, 0, 0, 0};
  check_read(sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, target, stride), where_,
             "sws_scale");
  for (std::size_t i = 0; i < rgba.size() / 4; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      image.rgb[3 * i + c] = without_alpha(rgba[4 * i + c], rgba[4 * i + 3], options_);
}

}  // namespace h3::ffmpeg
