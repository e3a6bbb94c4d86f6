// The MP4 that a render leaves: H.264 4:2:0 at 24 frames a second in BT.709 and AAC stereo at 32 kHz, moov first, the
// recipe in the comment tag (the one tag that survives a remux). Frames are encoded as they come; the file has a
// temporary name until it is complete and is removed where it never gets there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "media/sound.h"

namespace h3 {

struct Mp4Options {
  int width = 0, height = 0;            // even
  std::int64_t crf = 18;                // 0 (lossless in its colour space) to 51
  std::string preset = "medium";        // of libx264
  std::int64_t audio_bitrate = 192000;  // bits per second
  bool trim_sound = true;               // to ceil(32000 * frames / 24) samples (spec/vae.md 18.2)
  std::string title, comment;           // tags; empty: left out
  int threads = 0;                      // of the encoder; 0: as many as it likes
  std::string encoder;                  // empty: libx264, else libopenh264, else mpeg4, whichever is there
};

class Mp4Writer {
 public:
  // Opens the file. Throws SceneError naming it where that fails, as all calls do.
  Mp4Writer(const std::filesystem::path& path, const Mp4Options& options);
  ~Mp4Writer();
  Mp4Writer(const Mp4Writer&) = delete;
  Mp4Writer& operator=(const Mp4Writer&) = delete;

  // The next frame, RGB24, height * width * 3 bytes.
  void add_frame(std::span<const std::uint8_t> rgb);
  // The whole sound, stereo at 32 kHz, finite, once, before or after the frames.
  void add_sound(Sound sound);
  // Encodes what is pending, writes the index, gives the file its name. At least one frame and the sound are there.
  void finish();

  // The video encoder in use, and what to tell the user about it ("" for libx264).
  const std::string& encoder() const;
  const std::string& note() const;

 private:
  class Muxer;
  std::unique_ptr<Muxer> muxer_;
};

}  // namespace h3
