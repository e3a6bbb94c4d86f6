#include "media/container.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "media/local_file.h"

namespace h3::ffmpeg {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view own_content = "; only files that hold their pictures and sound themselves are read";

// What lists other files instead of holding pictures and sound; "" where a file's beginning is not of that kind.
std::string list_kind(std::string_view head, const fs::path& path) {
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  if (has("#EXTM3U") || ending == ".m3u" || ending == ".m3u8") return "an M3U or HLS playlist";
  if (has("<MPD") || ending == ".mpd") return "a DASH manifest";
  if (has("ffconcat version") || ending == ".ffconcat") return "a concat list";
  if (has("[playlist]") || has("<asx") || has("<ASX") || has("<playlist")) return "a playlist";
  if (has("<SmoothStreamingMedia")) return "a streaming manifest";
  if (head.starts_with("v=0\r\n") || head.starts_with("v=0\n")) return "an SDP description";
  return "";
}

// The same by the demuxer that FFmpeg would choose.
std::string list_kind(const AVInputFormat& format) {
  const std::string_view name = format.name;
  struct Kind {
    std::string_view name, kind;
  };
  static constexpr std::array<Kind, 11> kinds{{{"hls", "an M3U or HLS playlist"},
                                               {"dash", "a DASH manifest"},
                                               {"concat", "a concat list"},
                                               {"image2", "a pattern of picture files"},
                                               {"imf", "an IMF list"},
                                               {"webm_dash_manifest", "a DASH manifest"},
                                               {"sdp", "an SDP description"},
                                               {"rtsp", "a stream address"},
                                               {"rtp", "a stream address"},
                                               {"vobsub", "a subtitle index"},
                                               {"tty", "text"}}};
  for (const Kind& k : kinds)
    if (k.name == name) return std::string(k.kind);
  return name.ends_with("_pipe") ? "a picture" : "";
}

// WAV and AVI files state their size; FFmpeg takes what is there.
void check_riff_size(std::string_view head, const fs::path& path) {
  constexpr std::uint64_t head_bytes = 8, unknown = 0xffffffff, slack = 64;
  if (!head.starts_with("RIFF") || head.size() < head_bytes) return;
  std::uint64_t stated = 0, held = 0;
  for (std::size_t i = head_bytes; i-- > 4;) stated = stated << 8 | static_cast<unsigned char>(head[i]);
  std::error_code ec;
  held = fs::file_size(path, ec);
  if (!ec && stated != unknown && stated + head_bytes > held + slack)
    throw UserError(path.string(), "", "", fmt::format("is truncated: {} bytes of {}", held, stated + head_bytes));
}

int refuse_second_file(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

bool is_cover_art(const AVStream& stream) {
  return (stream.disposition & (AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS)) != 0;
}

}  // namespace

Container::Container(const fs::path& path) : path_(path.string()) {
  quiet_log();
  const std::string head = head_of_local_file(path, 4096), listed = list_kind(head, path);
  check_riff_size(head, path);
  if (!listed.empty()) throw UserError(path_, "", "", fmt::format("is {}{}", listed, own_content));

  const std::string url = "file:" + path_;
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "file", 0);
  AVIOContext* io = nullptr;
  const int opened = avio_open2(&io, url.c_str(), AVIO_FLAG_READ, nullptr, &settings);
  av_dict_free(&settings);
  check(opened, "avio_open2");
  io_.reset(io);

  const AVInputFormat* demuxer = nullptr;
  if (av_probe_input_buffer2(io, &demuxer, url.c_str(), nullptr, 0, 0) < 0 || !demuxer)
    throw UserError(path_, "", "", "cannot be read: it is of no format that FFmpeg knows, or damaged");
  const std::string refused = list_kind(*demuxer);
  if (!refused.empty()) throw UserError(path_, "", "", fmt::format("is {}{}", refused, own_content));

  AVFormatContext* format = avformat_alloc_context();
  check(format ? 0 : AVERROR(ENOMEM), "avformat_alloc_context");
  format->pb = io;
  format->protocol_whitelist = av_strdup("file");
  format->io_open = refuse_second_file;
  check(avformat_open_input(&format, url.c_str(), demuxer, nullptr), "avformat_open_input");
  format_.reset(format);
  check(avformat_find_stream_info(format, nullptr), "avformat_find_stream_info");
}

int Container::best_stream(AVMediaType type) const {
  const int best = av_find_best_stream(format_.get(), type, -1, -1, nullptr, 0);
  if (best < 0 || !is_cover_art(stream(best))) return best < 0 ? -1 : best;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    const AVStream& other = *format_->streams[i];
    if (other.codecpar->codec_type == type && !is_cover_art(other)) return static_cast<int>(i);
  }
  return -1;
}

bool Container::next(AVPacket& packet) const {
  av_packet_unref(&packet);
  const int code = av_read_frame(format_.get(), &packet);
  if (code == AVERROR_EOF) return false;
  check(code, "av_read_frame");
  return true;
}

StreamDecoder::StreamDecoder(const fs::path& path, AVMediaType type) : file_(path), index_(file_.best_stream(type)) {
  if (index_ < 0) return;
  const AVCodecParameters& parameters = *stream().codecpar;
  const AVCodec* decoder = avcodec_find_decoder(parameters.codec_id);
  if (!decoder)
    throw UserError(
        file_.path(), "", "",
        fmt::format("cannot be read: this FFmpeg has no decoder for {}", avcodec_get_name(parameters.codec_id)));
  codec_.reset(avcodec_alloc_context3(decoder));
  file_.check(codec_ ? 0 : AVERROR(ENOMEM), "avcodec_alloc_context3");
  file_.check(avcodec_parameters_to_context(codec_.get(), &parameters), "avcodec_parameters_to_context");
  codec_->pkt_timebase = stream().time_base;
  codec_->err_recognition = AV_EF_EXPLODE;
  file_.check(avcodec_open2(codec_.get(), decoder, nullptr), "avcodec_open2");
}

const AVFrame* StreamDecoder::next() {
  while (true) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code == AVERROR_EOF) return nullptr;
    if (code != AVERROR(EAGAIN)) {
      file_.check(code, "avcodec_receive_frame");
      return frame_.get();
    }
    feed();
  }
}

void StreamDecoder::feed() {
  while (file_.next(*packet_)) {
    if (packet_->stream_index != index_) continue;
    file_.check(avcodec_send_packet(codec_.get(), packet_.get()), "avcodec_send_packet");
    return;
  }
  file_.check(avcodec_send_packet(codec_.get(), nullptr), "avcodec_send_packet");
}

}  // namespace h3::ffmpeg
