#include "media/probe.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/display.h"
#include "media/frame_rgb.h"
#include "media/packet_scan.h"
#include "media/picture.h"
#include "media/resample.h"
#include "media/stored_sound.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

// Longer sounds are not decoded to count their samples.
static constexpr double longest_counted = 60;

double MediaFacts::seconds() const {
  return kind == MediaKind::sound ? sound_seconds() : static_cast<double>(frames) / 24;
}

double MediaFacts::sound_seconds() const {
  return has_sound() ? static_cast<double>(samples) / rate : 0;
}

std::string_view name_of(MediaKind kind) {
  return kind == MediaKind::picture ? "picture" : kind == MediaKind::clip ? "clip" : "sound";
}

static void add_video(const Container& file, int index, const PacketScan& scan, MediaFacts& facts) {
  const AVStream& stream = file.stream(index);
  check_colours(stream, file.path());
  const DisplaySize display = display_of(stream, file.path());
  if (!avcodec_find_decoder(stream.codecpar->codec_id))
    throw UserError(
        file.path(), "", "",
        fmt::format("cannot be read: this FFmpeg has no decoder for {}", avcodec_get_name(stream.codecpar->codec_id)));
  facts.kind = MediaKind::clip;
  facts.width = display.width;
  facts.height = display.height;
  facts.frame_rate = scan.frames.rate();
  facts.frames = scan.frames.slots();
  if (facts.frames < 1) throw UserError(file.path(), "", "", "holds no video frame that lasts 1/24 s");
}

static void add_sound(const Container& file, int index, const PacketScan& scan, const ReadOptions& options,
                      MediaFacts& facts) {
  const AVCodecParameters& parameters = *file.stream(index).codecpar;
  check_channels(file.path(), parameters.ch_layout.nb_channels, options);
  check_sound_start(file.path(), scan);
  const double begin = facts.kind == MediaKind::clip ? scan.video_start : scan.sound_start;
  facts.channels = parameters.ch_layout.nb_channels;
  facts.rate = parameters.sample_rate;
  if (scan.sound_end - begin > longest_counted) {
    facts.samples = std::llround((scan.sound_end - begin) * facts.rate);
    return;
  }
  const Sound sound = read_stored_sound(file.path(), scan, options, 2 * longest_counted);
  facts.rate = sound.rate;
  facts.samples = static_cast<std::int64_t>(sound.length());
  if (facts.samples == 0) throw UserError(file.path(), "", "", "holds no sound after the clip's first frame");
}

MediaFacts probe_media(const fs::path& path, const ReadOptions& options) {
  MediaFacts facts;
  if (is_picture(path)) {
    const PictureFacts picture = probe_picture(path);
    facts.format = picture.format;
    facts.width = picture.width;
    facts.height = picture.height;
    return facts;
  }
  const Container file(path);
  facts.format = file.format().iformat->name;
  const int video = file.best_stream(AVMEDIA_TYPE_VIDEO), audio = file.best_stream(AVMEDIA_TYPE_AUDIO);
  if (video < 0 && audio < 0) throw UserError(path.string(), "", "", "holds neither video nor sound");
  facts.kind = MediaKind::sound;
  const PacketScan scan = scan_packets(file);
  if (video >= 0) add_video(file, video, scan, facts);
  if (audio >= 0) add_sound(file, audio, scan, options, facts);
  return facts;
}

std::int64_t sound_length(const MediaFacts& facts, std::optional<std::int64_t> frames) {
  const std::int64_t most = frames ? samples_in_frames(*frames, facts.rate) : facts.samples;
  return resampled_length(std::min(facts.samples, most), facts.rate, 32000);
}

}  // namespace h3
