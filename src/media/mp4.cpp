#include "media/mp4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "media/ffmpeg.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

static constexpr int frames_per_second = 24, sample_rate = 32000;
// Both a frame and a sample last a whole number of its ticks, so that the file says exactly how long its tracks are.
static constexpr int movie_timescale = 96000;

// The container with its temporary file. Every call that may write looks at the file's own error too, because the
// muxer does not pass all of them on.
class Mp4Writer::Muxer {
 public:
  Muxer(const fs::path& path, const Mp4Options& options)
      : path_(path), temporary_(temporary_path_for(path)), options_(options) {
    CHECK_EQ(options.width % 2, 0);
    CHECK_EQ(options.height % 2, 0);
    quiet_log();
    check(avformat_alloc_output_context2(&format_, nullptr, "mp4", url().c_str()), "avformat_alloc_output_context2");
    try {
      open_video();
      open_audio();
      open_file();
    } catch (...) {
      discard();
      throw;
    }
  }
  ~Muxer() { discard(); }
  Muxer(const Muxer&) = delete;
  Muxer& operator=(const Muxer&) = delete;

  void add_frame(std::span<const std::uint8_t> rgb) {
    CHECK_EQ(rgb.size(), static_cast<std::size_t>(options_.width) * static_cast<std::size_t>(options_.height) * 3);
    check(av_frame_make_writable(picture_.get()), "av_frame_make_writable");
    const std::uint8_t* source[4] = {rgb.data(), nullptr, nullptr, nullptr};
    const int stride[4] = {3 * options_.width, 0, 0, 0};
    check(sws_scale(scaler_.get(), source, stride, 0, options_.height, picture_->data, picture_->linesize),
          "sws_scale");
    picture_->pts = frames_++;
    encode(*video_, picture_.get(), video_stream_);
  }

  void add_sound(Sound sound) {
    CHECK_EQ(sound.rate, sample_rate);
    CHECK_EQ(sound.channels, 2);
    H3_CHECK(sound.length() > 0 && sound_.length() == 0);
    CHECK_EQ(facts_of(sound).not_finite, std::size_t{0});
    sound_ = std::move(sound);
  }

  void finish() {
    CHECK_GE(frames_, 1);
    H3_CHECK(sound_.length() > 0);
    encode(*video_, nullptr, video_stream_);
    encode_sound();
    check(av_write_trailer(format_), "av_write_trailer");
    check(format_->pb->error, "av_write_trailer");
    check(avio_closep(&format_->pb), "avio_closep");
    commit_file(temporary_, path_);
    finished_ = true;
  }

  std::string encoder_, note_;

 private:
  std::string url() const { return "file:" + temporary_.string(); }
  int check(int code, const char* call) const { return check_write(code, path_.string(), call); }

  void discard() {
    if (format_ && format_->pb) avio_closep(&format_->pb);
    avformat_free_context(format_);
    format_ = nullptr;
    std::error_code ec;
    if (!finished_) fs::remove(temporary_, ec);
  }

  AVStream* add_stream(const AVCodecContext& codec) {
    AVStream* stream = avformat_new_stream(format_, nullptr);
    check(stream ? 0 : AVERROR(ENOMEM), "avformat_new_stream");
    stream->time_base = codec.time_base;
    check(avcodec_parameters_from_context(stream->codecpar, &codec), "avcodec_parameters_from_context");
    return stream;
  }

  static void set_quality(AVCodecContext& codec, const Mp4Options& options, const std::string& name) {
    if (name == "libx264") {
      av_opt_set(codec.priv_data, "preset", options.preset.c_str(), 0);
      av_opt_set_int(codec.priv_data, "crf", options.crf, 0);
    } else if (name == "mpeg4") {
      codec.flags |= AV_CODEC_FLAG_QSCALE;
      codec.global_quality = FF_QP2LAMBDA * std::clamp(static_cast<int>(options.crf) / 6, 1, 31);
    } else {  // by bits per pixel, halved every six steps as a quantiser would
      const double bits = 0.2 * std::exp2((18.0 - static_cast<double>(options.crf)) / 6);
      codec.bit_rate = std::llrint(bits * options.width * options.height * frames_per_second);
    }
  }

  // Opens the first encoder of the list that is there and works with this size.
  void open_video() {
    std::vector<std::string> names{"libx264", "libopenh264", "mpeg4"};
    if (!options_.encoder.empty()) names = {options_.encoder};
    int code = AVERROR_ENCODER_NOT_FOUND;
    for (const std::string& name : names) {
      const AVCodec* encoder = avcodec_find_encoder_by_name(name.c_str());
      if (!encoder) continue;
      video_ = video_codec(encoder, name);
      code = avcodec_open2(video_.get(), encoder, nullptr);
      if (code < 0) continue;
      encoder_ = name;
      break;
    }
    check(code, "avcodec_open2, video");
    if (encoder_ != "libx264")
      note_ = fmt::format("the video is encoded with {}: this FFmpeg has no libx264", encoder_);
    video_stream_ = add_stream(*video_);
    video_stream_->avg_frame_rate = {frames_per_second, 1};
    open_scaler();
  }

  Codec video_codec(const AVCodec* encoder, const std::string& name) const {
    Codec codec(avcodec_alloc_context3(encoder));
    check(codec ? 0 : AVERROR(ENOMEM), "avcodec_alloc_context3");
    codec->width = options_.width;
    codec->height = options_.height;
    codec->sample_aspect_ratio = {1, 1};
    codec->time_base = {1, frames_per_second};
    codec->framerate = {frames_per_second, 1};
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->color_range = AVCOL_RANGE_MPEG;
    codec->color_primaries = AVCOL_PRI_BT709;
    codec->color_trc = AVCOL_TRC_BT709;
    codec->colorspace = AVCOL_SPC_BT709;
    codec->chroma_sample_location = AVCHROMA_LOC_LEFT;
    codec->gop_size = 2 * frames_per_second;
    codec->thread_count = options_.threads;
    if (format_->oformat->flags & AVFMT_GLOBALHEADER) codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    set_quality(*codec, options_, name);
    return codec;
  }

  void open_scaler() {
    const int w = options_.width, h = options_.height;
    const int flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
    scaler_.reset(sws_getContext(w, h, AV_PIX_FMT_RGB24, w, h, AV_PIX_FMT_YUV420P, flags, nullptr, nullptr, nullptr));
    check(scaler_ ? 0 : AVERROR(ENOMEM), "sws_getContext");
    const int* bt709 = sws_getCoefficients(SWS_CS_ITU709);
    check(sws_setColorspaceDetails(scaler_.get(), bt709, 1, bt709, 0, 0, 1 << 16, 1 << 16), "sws_setColorspaceDetails");
    picture_ = new_frame();
    picture_->format = AV_PIX_FMT_YUV420P;
    picture_->width = w;
    picture_->height = h;
    picture_->color_range = video_->color_range;
    picture_->colorspace = video_->colorspace;
    check(av_frame_get_buffer(picture_.get(), 0), "av_frame_get_buffer");
  }

  void open_audio() {
    const AVCodec* encoder = avcodec_find_encoder(AV_CODEC_ID_AAC);
    check(encoder ? 0 : AVERROR_ENCODER_NOT_FOUND, "avcodec_find_encoder, AAC");
    audio_.reset(avcodec_alloc_context3(encoder));
    check(audio_ ? 0 : AVERROR(ENOMEM), "avcodec_alloc_context3");
    audio_->sample_rate = sample_rate;
    audio_->sample_fmt = AV_SAMPLE_FMT_FLTP;
    av_channel_layout_default(&audio_->ch_layout, 2);
    audio_->time_base = {1, sample_rate};
    audio_->bit_rate = options_.audio_bitrate;
    if (format_->oformat->flags & AVFMT_GLOBALHEADER) audio_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    check(avcodec_open2(audio_.get(), encoder, nullptr), "avcodec_open2, audio");
    audio_stream_ = add_stream(*audio_);
  }

  void open_file() {
    if (!options_.title.empty())
      check(av_dict_set(&format_->metadata, "title", options_.title.c_str(), 0), "av_dict_set");
    if (!options_.comment.empty())
      check(av_dict_set(&format_->metadata, "comment", options_.comment.c_str(), 0), "av_dict_set");
    format_->max_interleave_delta = 0;  // wait for the sound, however late it comes
    format_->flags |= AVFMT_FLAG_BITEXACT;
    check(avio_open2(&format_->pb, url().c_str(), AVIO_FLAG_WRITE, nullptr, nullptr), "avio_open2");
    AVDictionary* settings = nullptr;
    av_dict_set(&settings, "movflags", "+faststart", 0);
    av_dict_set_int(&settings, "movie_timescale", movie_timescale, 0);
    const int code = avformat_write_header(format_, &settings);
    av_dict_free(&settings);
    check(code, "avformat_write_header");
  }

  // Encodes a frame, or flushes for nullptr, and muxes what comes out.
  void encode(AVCodecContext& codec, const AVFrame* frame, const AVStream* stream) {
    check(avcodec_send_frame(&codec, frame), "avcodec_send_frame");
    while (true) {
      const int code = avcodec_receive_packet(&codec, packet_.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      check(code, "avcodec_receive_packet");
      if (packet_->duration == 0 && codec.codec_type == AVMEDIA_TYPE_VIDEO) packet_->duration = 1;
      av_packet_rescale_ts(packet_.get(), codec.time_base, stream->time_base);
      packet_->stream_index = stream->index;
      check(av_interleaved_write_frame(format_, packet_.get()), "av_interleaved_write_frame");
      check(format_->pb->error, "av_interleaved_write_frame");
    }
  }

  void encode_sound() {
    const auto limit = static_cast<std::size_t>((sample_rate * frames_ + frames_per_second - 1) / frames_per_second);
    const Sound sound = options_.trim_sound ? trimmed(sound_, limit) : std::exchange(sound_, {});
    const auto step = static_cast<std::size_t>(audio_->frame_size);
    for (std::size_t at = 0; at < sound.length(); at += step) {
      const std::size_t count = std::min(step, sound.length() - at);
      const Frame frame = new_frame();
      frame->format = audio_->sample_fmt;
      frame->nb_samples = static_cast<int>(count);
      frame->sample_rate = sample_rate;
      check(av_channel_layout_copy(&frame->ch_layout, &audio_->ch_layout), "av_channel_layout_copy");
      check(av_frame_get_buffer(frame.get(), 0), "av_frame_get_buffer");
      for (int c = 0; c < 2; ++c) std::memcpy(frame->data[c], sound.channel(c).data() + at, count * sizeof(float));
      frame->pts = static_cast<std::int64_t>(at);
      encode(*audio_, frame.get(), audio_stream_);
    }
    encode(*audio_, nullptr, audio_stream_);
  }

  fs::path path_, temporary_;
  Mp4Options options_;
  AVFormatContext* format_ = nullptr;
  Codec video_, audio_;
  AVStream* video_stream_ = nullptr;  // owned by format_
  AVStream* audio_stream_ = nullptr;
  Scaler scaler_;
  Frame picture_;
  Packet packet_ = new_packet();
  Sound sound_;
  std::int64_t frames_ = 0;
  bool finished_ = false;
};

Mp4Writer::Mp4Writer(const fs::path& path, const Mp4Options& options)
    : muxer_(std::make_unique<Muxer>(path, options)) {}
Mp4Writer::~Mp4Writer() = default;
void Mp4Writer::add_frame(std::span<const std::uint8_t> rgb) {
  muxer_->add_frame(rgb);
}
void Mp4Writer::add_sound(Sound sound) {
  muxer_->add_sound(std::move(sound));
}
void Mp4Writer::finish() {
  muxer_->finish();
}
const std::string& Mp4Writer::encoder() const {
  return muxer_->encoder_;
}
const std::string& Mp4Writer::note() const {
  return muxer_->note_;
}

}  // namespace h3
