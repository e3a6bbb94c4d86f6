#include "media_maker.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace h3::test {

using namespace ffmpeg;

std::array<int, 4> numbered(int frame, double, double) {
  return {16 + 2 * frame, 128, 128, 255};
}

int number_of(std::uint8_t grey) {
  return static_cast<int>(std::lround(grey * 219.0 / 255 / 2));
}

std::vector<std::int64_t> ticks_up_to(std::int64_t count) {
  std::vector<std::int64_t> ticks(static_cast<std::size_t>(count));
  std::iota(ticks.begin(), ticks.end(), 0);
  return ticks;
}

namespace {

int must(int code, const char* call) {
  if (code < 0) throw std::runtime_error(std::string(call) + ": " + reason(code));
  return code;
}

struct CloseOutput {
  void operator()(AVFormatContext* p) const {
    avio_closep(&p->pb);
    avformat_free_context(p);
  }
};

void paint_frame(const MadeVideo& v, int index, AVFrame& frame) {
  const AVPixFmtDescriptor* layout = av_pix_fmt_desc_get(v.format);
  for (int c = 0; c < layout->nb_components; ++c) {
    const AVComponentDescriptor& comp = layout->comp[c];
    const bool chroma = (c == 1 || c == 2) && (layout->flags & AV_PIX_FMT_FLAG_RGB) == 0;
    const int w = chroma ? -(-v.width >> layout->log2_chroma_w) : v.width;
    const int h = chroma ? -(-v.height >> layout->log2_chroma_h) : v.height;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        const int value = v.paint(index, (x + 0.5) / w, (y + 0.5) / h)[static_cast<std::size_t>(c)];
        std::uint8_t* at = frame.data[comp.plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[comp.plane] +
                           x * comp.step + comp.offset;
        const auto wide = static_cast<std::uint16_t>(value);
        if (comp.depth > 8)
          std::memcpy(at, &wide, 2);
        else
          *at = static_cast<std::uint8_t>(value);
      }
  }
}

void put_sample(AVSampleFormat format, float sample, std::uint8_t* data, int index) {
  if (format == AV_SAMPLE_FMT_S16) {
    const auto value = static_cast<std::int16_t>(std::lround(sample * 32767));
    std::memcpy(data + 2 * index, &value, 2);
  } else if (format == AV_SAMPLE_FMT_FLT) {
    std::memcpy(data + 4 * index, &sample, 4);
  } else {
    throw std::runtime_error("an encoder of another sample format");
  }
}

// See ffmpeg::side_data: from FFmpeg 6.1 on it is kept with the codec's parameters.
std::uint8_t* new_side_data(AVStream& stream, AVPacketSideDataType type, std::size_t size) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
  AVCodecParameters& p = *stream.codecpar;
  return av_packet_side_data_new(&p.coded_side_data, &p.nb_coded_side_data, type, size, 0)->data;
#else
  return av_stream_new_side_data(&stream, type, size);
#endif
}

class Maker {
 public:
  explicit Maker(const std::filesystem::path& path) {
    quiet_log();
    AVFormatContext* format = nullptr;
    must(avformat_alloc_output_context2(&format, nullptr, nullptr, path.c_str()), "avformat_alloc_output_context2");
    format_.reset(format);
    must(avio_open(&format->pb, path.c_str(), AVIO_FLAG_WRITE), "avio_open");
  }

  void add(const MadeVideo& v) {
    video_codec_ = encoder(v.codec);
    AVCodecContext& c = *video_codec_;
    c.width = v.width;
    c.height = v.height;
    c.pix_fmt = v.format;
    c.time_base = v.tick;
    c.sample_aspect_ratio = v.pixel_aspect;
    c.colorspace = v.matrix;
    c.color_range = v.range;
    c.color_primaries = v.primaries;
    c.color_trc = v.transfer;
    c.bit_rate = 2000000;
    video_ = open(c);
    video_->sample_aspect_ratio = v.pixel_aspect;
    if (!v.turn) return;
    std::uint8_t* matrix = new_side_data(*video_, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(std::int32_t));
    const auto& [a, b, x, d] = *v.turn;
    const std::array<std::int32_t, 9> values{a * 65536, b * 65536, 0, x * 65536, d * 65536, 0, 0, 0, 1 << 30};
    std::memcpy(matrix, values.data(), sizeof values);
  }

  void add(const MadeSound& s) {
    sound_codec_ = encoder(s.codec);
    AVCodecContext& c = *sound_codec_;
    if (s.layout.empty())
      av_channel_layout_default(&c.ch_layout, s.sound.channels);
    else
      must(av_channel_layout_from_string(&c.ch_layout, s.layout.c_str()), "av_channel_layout_from_string");
    c.sample_rate = s.sound.rate;
    c.sample_fmt = c.codec->sample_fmts[0];
    c.time_base = {1, s.sound.rate};
    sound_ = open(c);
  }

  void begin() { must(avformat_write_header(format_.get(), nullptr), "avformat_write_header"); }

  void write(const MadeVideo& v) {
    for (std::size_t i = 0; i < v.ticks.size(); ++i) {
      const Frame frame = new_frame();
      frame->format = v.format;
      frame->width = v.width;
      frame->height = v.height;
      must(av_frame_get_buffer(frame.get(), 0), "av_frame_get_buffer");
      paint_frame(v, static_cast<int>(i), *frame);
      frame->pts = v.ticks[i];
      encode(*video_codec_, *video_, frame.get(), i + 1 < v.ticks.size() ? v.ticks[i + 1] - v.ticks[i] : v.last_hold);
    }
    encode(*video_codec_, *video_, nullptr, v.last_hold);
  }

  void write(const MadeSound& s) {
    const auto length = static_cast<std::int64_t>(s.sound.length());
    const std::int64_t step = sound_codec_->frame_size > 0 ? sound_codec_->frame_size : 1000;
    for (std::int64_t at = 0; at < length; at += step) {
      const Frame frame = sampled(s, at, std::min(step, length - at));
      frame->pts = std::llround(s.start * s.sound.rate) + at;
      encode(*sound_codec_, *sound_, frame.get());
    }
    encode(*sound_codec_, *sound_, nullptr);
  }

  void end() { must(av_write_trailer(format_.get()), "av_write_trailer"); }

 private:
  Codec encoder(const std::string& name) const {
    const AVCodec* found = avcodec_find_encoder_by_name(name.c_str());
    if (!found) throw std::runtime_error("there is no encoder " + name);
    Codec codec(avcodec_alloc_context3(found));
    codec->thread_count = 1;
    if ((format_->oformat->flags & AVFMT_GLOBALHEADER) != 0) codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    return codec;
  }

  AVStream* open(AVCodecContext& codec) {
    must(avcodec_open2(&codec, nullptr, nullptr), "avcodec_open2");
    AVStream* stream = avformat_new_stream(format_.get(), nullptr);
    must(stream ? 0 : AVERROR(ENOMEM), "avformat_new_stream");
    stream->time_base = codec.time_base;
    must(avcodec_parameters_from_context(stream->codecpar, &codec), "avcodec_parameters_from_context");
    return stream;
  }

  Frame sampled(const MadeSound& s, std::int64_t at, std::int64_t count) const {
    Frame frame = new_frame();
    const AVCodecContext& c = *sound_codec_;
    frame->format = c.sample_fmt;
    frame->sample_rate = c.sample_rate;
    must(av_channel_layout_copy(&frame->ch_layout, &c.ch_layout), "av_channel_layout_copy");
    frame->nb_samples = static_cast<int>(count);
    must(av_frame_get_buffer(frame.get(), 0), "av_frame_get_buffer");
    const bool planar = av_sample_fmt_is_planar(c.sample_fmt) != 0;
    for (int channel = 0; channel < s.sound.channels; ++channel)
      for (int i = 0; i < frame->nb_samples; ++i)
        put_sample(av_get_packed_sample_fmt(c.sample_fmt),
                   s.sound.channel(channel)[static_cast<std::size_t>(at) + static_cast<std::size_t>(i)],
                   frame->extended_data[planar ? channel : 0], planar ? i : i * s.sound.channels + channel);
    return frame;
  }

  void encode(AVCodecContext& codec, const AVStream& stream, const AVFrame* frame, std::int64_t duration = 0) {
    must(avcodec_send_frame(&codec, frame), "avcodec_send_frame");
    const Packet packet = new_packet();
    while (true) {
      const int code = avcodec_receive_packet(&codec, packet.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      must(code, "avcodec_receive_packet");
      if (duration > 0) packet->duration = duration;
      av_packet_rescale_ts(packet.get(), codec.time_base, stream.time_base);
      packet->stream_index = stream.index;
      must(av_interleaved_write_frame(format_.get(), packet.get()), "av_interleaved_write_frame");
    }
  }

  std::unique_ptr<AVFormatContext, CloseOutput> format_;
  Codec video_codec_, sound_codec_;
  AVStream *video_ = nullptr, *sound_ = nullptr;
};

}  // namespace

void make_media(const std::filesystem::path& path, const std::optional<MadeVideo>& video,
                const std::optional<MadeSound>& sound) {
  Maker maker(path);
  if (video) maker.add(*video);
  if (sound) maker.add(*sound);
  maker.begin();
  if (video) maker.write(*video);
  if (sound) maker.write(*sound);
  maker.end();
}

}  // namespace h3::test
