#include "media/clip_reader.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "media/ffmpeg.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

namespace {

// One stream of a file and its decoder.
class StreamDecoder {
 public:
  StreamDecoder(const fs::path& path, AVMediaType type) : path_(path.string()) {
    open_file(path);
    const AVCodec* decoder = nullptr;
    index_ = av_find_best_stream(format_.get(), type, -1, -1, &decoder, 0);
    if (index_ < 0) return;
    codec_.reset(avcodec_alloc_context3(decoder));
    check(codec_ ? 0 : AVERROR(ENOMEM), "avcodec_alloc_context3");
    check(avcodec_parameters_to_context(codec_.get(), stream().codecpar), "avcodec_parameters_to_context");
    codec_->pkt_timebase = stream().time_base;
    codec_->err_recognition = AV_EF_EXPLODE;
    check(avcodec_open2(codec_.get(), decoder, nullptr), "avcodec_open2");
  }

  bool has_stream() const { return index_ >= 0; }
  const AVStream& stream() const { return *format_->streams[index_]; }
  AVFormatContext& format() { return *format_; }
  AVCodecContext& codec() { return *codec_; }
  const std::string& path() const { return path_; }
  int check(int code, const char* call) const { return check_read(code, path_, call); }

  // The next decoded frame, nullptr after the last.
  const AVFrame* next() {
    while (true) {
      const int code = avcodec_receive_frame(codec_.get(), frame_.get());
      if (code == AVERROR_EOF) return nullptr;
      if (code != AVERROR(EAGAIN)) {
        check(code, "avcodec_receive_frame");
        return frame_.get();
      }
      feed();
    }
  }

 private:
  void open_file(const fs::path& path) {
    quiet_log();
    std::error_code ec;
    if (fs::is_directory(path, ec)) throw UserError(path_, "", "", "is a folder, expected a clip");
    // No other protocol and no playlist: a clip never makes the program read anything but this file.
    AVDictionary* settings = nullptr;
    av_dict_set(&settings, "protocol_whitelist", "file", 0);
    av_dict_set(&settings, "format_whitelist", "mov,matroska", 0);
    AVFormatContext* format = nullptr;
    const int code = avformat_open_input(&format, ("file:" + path_).c_str(), nullptr, &settings);
    av_dict_free(&settings);
    check(code, "avformat_open_input");
    format_.reset(format);
    check(avformat_find_stream_info(format, nullptr), "avformat_find_stream_info");
  }

  void feed() {
    while (true) {
      const int code = av_read_frame(format_.get(), packet_.get());
      if (code == AVERROR_EOF) {
        check(avcodec_send_packet(codec_.get(), nullptr), "avcodec_send_packet");
        return;
      }
      check(code, "av_read_frame");
      const bool ours = packet_->stream_index == index_;
      if (ours) check(avcodec_send_packet(codec_.get(), packet_.get()), "avcodec_send_packet");
      av_packet_unref(packet_.get());
      if (ours) return;
    }
  }

  std::string path_;
  Input format_;
  Codec codec_;
  int index_ = -1;
  Frame frame_ = new_frame();
  Packet packet_ = new_packet();
};

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
  explicit Decoder(const fs::path& path) : video_(path, AVMEDIA_TYPE_VIDEO) {
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
    collect_tags(video_.format().metadata, info_.tags);
  }

  const ClipInfo& info() const { return info_; }

  bool next(Image& image) {
    const AVFrame* frame = video_.next();
    if (!frame) return false;
    image.width = frame->width;
    image.height = frame->height;
    image.rgb.resize(static_cast<std::size_t>(frame->width) * static_cast<std::size_t>(frame->height) * 3);
    prepare_scaler(*frame);
    std::uint8_t* const target[4] = {image.rgb.data(), nullptr, nullptr, nullptr};
    const int stride[4] = {3 * frame->width, 0, 0, 0};
    video_.check(sws_scale(scaler_.get(), frame->data, frame->linesize, 0, frame->height, target, stride), "sws_scale");
    return true;
  }

 private:
  void describe_audio() {
    const int index =
        av_find_best_stream(const_cast<AVFormatContext*>(&video_.format()), AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
    if (index < 0) return;
    const AVStream& a = *video_.format().streams[index];
    info_.audio_codec = avcodec_get_name(a.codecpar->codec_id);
    info_.audio_seconds = seconds_of(a);
    info_.sample_rate = a.codecpar->sample_rate;
    info_.channels = a.codecpar->ch_layout.nb_channels;
  }

  void prepare_scaler(const AVFrame& f) {
    if (scaler_ && f.width == width_ && f.height == height_ && f.format == format_) return;
    const int flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT;
    scaler_.reset(sws_getContext(f.width, f.height, static_cast<AVPixelFormat>(f.format), f.width, f.height,
                                 AV_PIX_FMT_RGB24, flags, nullptr, nullptr, nullptr));
    video_.check(scaler_ ? 0 : AVERROR(EINVAL), "sws_getContext");
    const int full_range = f.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    const int* from = sws_getCoefficients(f.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_ITU709 : f.colorspace);
    // Negative where there is nothing to set: an RGB source.
    sws_setColorspaceDetails(scaler_.get(), from, full_range, from, 1, 0, 1 << 16, 1 << 16);
    width_ = f.width;
    height_ = f.height;
    format_ = f.format;
  }

  StreamDecoder video_;
  ClipInfo info_;
  Scaler scaler_;
  int width_ = 0, height_ = 0, format_ = -1;
};

ClipReader::ClipReader(const fs::path& path) : decoder_(std::make_unique<Decoder>(path)) {}
ClipReader::~ClipReader() = default;
const ClipInfo& ClipReader::info() const {
  return decoder_->info();
}
bool ClipReader::next(Image& frame) {
  return decoder_->next(frame);
}

namespace {

// Appends a decoded frame to one list of samples a channel, as float32.
class SampleCollector {
 public:
  explicit SampleCollector(StreamDecoder& audio) : audio_(audio) {
    AVCodecContext& c = audio.codec();
    SwrContext* swr = nullptr;
    audio.check(swr_alloc_set_opts2(&swr, &c.ch_layout, AV_SAMPLE_FMT_FLTP, c.sample_rate, &c.ch_layout, c.sample_fmt,
                                    c.sample_rate, 0, nullptr),
                "swr_alloc_set_opts2");
    converter_.reset(swr);
    audio.check(swr_init(swr), "swr_init");
    channels_.resize(static_cast<std::size_t>(c.ch_layout.nb_channels));
  }

  void add(const AVFrame& frame) {
    const std::size_t old = channels_.front().size();
    std::vector<std::uint8_t*> targets;
    for (auto& channel : channels_) {
      channel.resize(old + static_cast<std::size_t>(frame.nb_samples));
      targets.push_back(reinterpret_cast<std::uint8_t*>(channel.data() + old));
    }
    const int n = audio_.check(swr_convert(converter_.get(), targets.data(), frame.nb_samples,
                                           const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples),
                               "swr_convert");
    CHECK_EQ(n, frame.nb_samples);
  }

  Sound take(int rate) {
    Sound sound{rate, static_cast<int>(channels_.size()), {}};
    for (const auto& channel : channels_) sound.samples.insert(sound.samples.end(), channel.begin(), channel.end());
    return sound;
  }

 private:
  const StreamDecoder& audio_;
  Resampler converter_;
  std::vector<std::vector<float>> channels_;
};

}  // namespace

Sound read_clip_sound(const fs::path& path) {
  StreamDecoder audio(path, AVMEDIA_TYPE_AUDIO);
  if (!audio.has_stream()) return {};
  SampleCollector samples(audio);
  while (const AVFrame* frame = audio.next()) samples.add(*frame);
  const int rate = audio.codec().sample_rate;
  Sound sound = samples.take(rate);
  // The last packet is padded to a whole frame; the stream's duration tells where the sound ends.
  const AVStream& stream = audio.stream();
  if (stream.duration == AV_NOPTS_VALUE) return sound;
  const std::int64_t length = av_rescale_q(stream.duration, stream.time_base, AVRational{1, rate});
  return trimmed(sound, static_cast<std::size_t>(std::max<std::int64_t>(0, length)));
}

VideoFile read_clip(const fs::path& path) {
  ClipReader reader(path);
  VideoFile clip{reader.info(), {}, {}};
  for (Image frame; reader.next(frame);) clip.frames.push_back(frame);
  clip.sound = read_clip_sound(path);
  return clip;
}

}  // namespace h3
