#include "media/ffmpeg.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <mutex>
#include <new>

#include "base/error.h"

namespace h3::ffmpeg {

static void to_debug_log(void*, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string text(line.data());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty()) spdlog::debug("ffmpeg: {}", text);
}

void quiet_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(to_debug_log); });
}

Frame new_frame() {
  Frame frame(av_frame_alloc());
  if (!frame) throw std::bad_alloc();
  return frame;
}

Packet new_packet() {
  Packet packet(av_packet_alloc());
  if (!packet) throw std::bad_alloc();
  return packet;
}

std::span<const std::uint8_t> side_data(const AVStream& stream, AVPacketSideDataType type) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
  const AVCodecParameters& p = *stream.codecpar;
  const AVPacketSideData* found = av_packet_side_data_get(p.coded_side_data, p.nb_coded_side_data, type);
  if (!found) return {};
  return {found->data, found->size};
#else
  std::size_t size = 0;
  const std::uint8_t* data = av_stream_get_side_data(&stream, type, &size);
  if (!data) return {};
  return {data, size};
#endif
}

std::string reason(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(code, text.data(), text.size());
  return text.data();
}

int check_write(int code, const std::string& path, const char* call) {
  if (code < 0) throw SceneError(fmt::format("{}: cannot be written: {} ({})", path, reason(code), call));
  return code;
}

int check_read(int code, const std::string& path, const char* call) {
  if (code < 0) throw UserError(path, "", "", fmt::format("cannot be read: {} ({})", reason(code), call));
  return code;
}

}  // namespace h3::ffmpeg
