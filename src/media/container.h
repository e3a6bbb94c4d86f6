// A media file opened with FFmpeg, and one of its streams being decoded. Whatever makes a file read something else is
// shut off: playlists, manifests, concat lists and patterns are refused by name before FFmpeg interprets them, no
// protocol but "file" is allowed, and no demuxer may open a second file. Only the .cpp files of this room include this.
#pragma once

#include <filesystem>
#include <string>

#include "media/ffmpeg.h"

namespace h3::ffmpeg {

class Container {
 public:
  // Throws UserError naming the file.
  explicit Container(const std::filesystem::path& path);

  AVFormatContext& format() const { return *format_; }
  const std::string& path() const { return path_; }
  const AVStream& stream(int index) const { return *format_->streams[index]; }
  // The stream of a type that players show, -1 where there is none. Cover art is no video.
  int best_stream(AVMediaType type) const;
  // The next packet of any stream; false at the end. Throws UserError for damaged data.
  bool next(AVPacket& packet) const;
  int check(int code, const char* call) const { return check_read(code, path_, call); }

 private:
  std::string path_;
  Io io_;
  Input format_;
};

class StreamDecoder {
 public:
  StreamDecoder(const std::filesystem::path& path, AVMediaType type);

  bool has_stream() const { return index_ >= 0; }
  const AVStream& stream() const { return file_.stream(index_); }
  const Container& file() const { return file_; }
  const AVCodecContext& codec() const { return *codec_; }

  // The next decoded frame, valid until the next call; nullptr after the last. Throws UserError for damaged data.
  const AVFrame* next();

 private:
  void feed();

  Container file_;
  int index_;
  Codec codec_;
  Frame frame_ = new_frame();
  Packet packet_ = new_packet();
};

}  // namespace h3::ffmpeg
