#include "media/clip_reader.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "media/container.h"
#include "media/frame_rgb.h"
#include "media/sound_decode.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

namespace {

double seconds_of(const AVStream& stream) {
  return stream.duration == AV_NOPTS_VALUE ? 0 : static_cast<double>(stream.duration) * av_q2d(stream.time_base);
}

std::string text(const char* name) {
  return name ? name : "";
}

void collect_tags(const AVDictionary* tags, std::map<std::string, std::string>& into) {
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(tags, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) into[entry->key] = entry->value;
}

}  // namespace

class ClipReader::Decoder {
 public:
  explicit Decoder(const fs::path& path) : video_(path, AVMEDIA_TYPE_VIDEO), converter_(path.string(), {}) {
    if (!video_.has_stream()) throw UserError(path.string(), "", "", "holds no video");
    const AVStream& v = video_.stream();
    info_.width = v.codecpar->width;
    info_.height = v.codecpar->height;
    info_.frames = v.nb_frames;
    info_.frame_rate = av_q2d(v.avg_frame_rate);
    info_.video_seconds = seconds_of(v);
    info_.video_codec = avcodec_get_name(v.codecpar->codec_id);
    info_.pixel_format = text(av_get_pix_fmt_name(static_cast<AVPixelFormat>(v.codecpar->format)));
    info_.color_space = text(av_color_space_name(v.codecpar->color_space));
    info_.color_range = text(av_color_range_name(v.codecpar->color_range));
    describe_audio();
    collect_tags(video_.file().format().metadata, info_.tags);
  }

  const ClipInfo& info() const { return info_; }

  bool next(Image& image) {
    const AVFrame* frame = video_.next();
    if (!frame) return false;
    converter_.convert(*frame, image);
    return true;
  }

 private:
  void describe_audio() {
    const int index = video_.file().best_stream(AVMEDIA_TYPE_AUDIO);
    if (index < 0) return;
    const AVStream& a = video_.file().stream(index);
    info_.audio_codec = avcodec_get_name(a.codecpar->codec_id);
    info_.audio_seconds = seconds_of(a);
    info_.sample_rate = a.codecpar->sample_rate;
    info_.channels = a.codecpar->ch_layout.nb_channels;
  }

  StreamDecoder video_;
  FrameConverter converter_;
  ClipInfo info_;
};

ClipReader::ClipReader(const fs::path& path) : decoder_(std::make_unique<Decoder>(path)) {}
ClipReader::~ClipReader() = default;
const ClipInfo& ClipReader::info() const {
  return decoder_->info();
}
bool ClipReader::next(Image& frame) {
  return decoder_->next(frame);
}

Sound read_clip_sound(const fs::path& path) {
  Sound sound = decode_sound(path).sound;
  return sound.channels > 0 ? sound : Sound{};
}

VideoFile read_clip(const fs::path& path) {
  ClipReader reader(path);
  VideoFile clip{reader.info(), {}, {}};
  for (Image frame; reader.next(frame);) clip.frames.push_back(frame);
  clip.sound = read_clip_sound(path);
  return clip;
}

}  // namespace h3
