// FFmpeg's objects with owners, and its return codes with words. Only the .cpp files of this room include this.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace h3::ffmpeg {

struct Free {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
  void operator()(AVIOContext* p) const { avio_closep(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
  void operator()(SwrContext* p) const { swr_free(&p); }
};
using Io = std::unique_ptr<AVIOContext, Free>;
using Input = std::unique_ptr<AVFormatContext, Free>;
using Codec = std::unique_ptr<AVCodecContext, Free>;
using Frame = std::unique_ptr<AVFrame, Free>;
using Packet = std::unique_ptr<AVPacket, Free>;
using Scaler = std::unique_ptr<SwsContext, Free>;
using Resampler = std::unique_ptr<SwrContext, Free>;

Frame new_frame();
Packet new_packet();

// Sends FFmpeg's own messages to the log at level debug instead of the terminal. Cheap to call often.
void quiet_log();

// What a stream's header says beside its parameters (empty: nothing of that kind). FFmpeg keeps it with the codec's
// parameters from 6.1 on, with the stream before.
std::span<const std::uint8_t> side_data(const AVStream& stream, AVPacketSideDataType type);

// FFmpeg's words for a return code.
std::string reason(int code);

// Return codes of calls that write `path`: a SceneError naming file and call where negative. Passes the code on.
int check_write(int code, const std::string& path, const char* call);
// The same for calls that read `path`: a UserError.
int check_read(int code, const std::string& path, const char* call);

}  // namespace h3::ffmpeg
