#include "media/sound_decode.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace h3::ffmpeg {

namespace fs = std::filesystem;

namespace {

// Appends decoded frames to one list of samples a channel.
class SampleCollector {
 public:
  explicit SampleCollector(const StreamDecoder& audio) : audio_(audio) {}

  void add(const AVFrame& frame) {
    if (channels_.empty())
      begin(frame);
    else
      require_same(frame);
    if (frame.best_effort_timestamp != AV_NOPTS_VALUE) fill_pause(frame);
    const std::size_t old = channels_.front().size();
    std::vector<std::uint8_t*> targets;
    for (auto& channel : channels_) {
      channel.resize(old + static_cast<std::size_t>(frame.nb_samples));
      targets.push_back(reinterpret_cast<std::uint8_t*>(channel.data() + old));
    }
    const int n =
        audio_.file().check(swr_convert(converter_.get(), targets.data(), frame.nb_samples,
                                        const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples),
                            "swr_convert");
    CHECK_EQ(n, frame.nb_samples);
  }

  double seconds() const { return channels_.empty() ? 0 : static_cast<double>(channels_.front().size()) / rate_; }

  DecodedSound take() const {
    DecodedSound decoded{{rate_, static_cast<int>(channels_.size()), {}}, start_, speakers_};
    for (const auto& channel : channels_)
      decoded.sound.samples.insert(decoded.sound.samples.end(), channel.begin(), channel.end());
    return decoded;
  }

 private:
  double time_of(const AVFrame& frame) const {
    return static_cast<double>(frame.best_effort_timestamp) * av_q2d(audio_.stream().time_base);
  }

  void begin(const AVFrame& frame) {
    SwrContext* swr = nullptr;
    AVChannelLayout layout = frame.ch_layout;  // borrowed: the frame keeps what it points to
    const auto format = static_cast<AVSampleFormat>(frame.format);
    audio_.file().check(swr_alloc_set_opts2(&swr, &layout, AV_SAMPLE_FMT_FLTP, frame.sample_rate, &layout, format,
                                            frame.sample_rate, 0, nullptr),
                        "swr_alloc_set_opts2");
    converter_.reset(swr);
    audio_.file().check(swr_init(swr), "swr_init");
    rate_ = frame.sample_rate;
    format_ = frame.format;
    channels_.resize(static_cast<std::size_t>(frame.ch_layout.nb_channels));
    for (unsigned i = 0; i < channels_.size(); ++i)
      speakers_.push_back(av_channel_layout_channel_from_index(&frame.ch_layout, i));
    if (frame.best_effort_timestamp != AV_NOPTS_VALUE) start_ = time_of(frame);
  }

  void require_same(const AVFrame& frame) const {
    const bool same = frame.sample_rate == rate_ && frame.format == format_ &&
                      frame.ch_layout.nb_channels == static_cast<int>(channels_.size());
    if (!same)
      throw UserError(audio_.file().path(), "", "",
                      fmt::format("changes its sound from {} Hz, {} channels to {} Hz, {} channels at {:.2f} s", rate_,
                                  channels_.size(), frame.sample_rate, frame.ch_layout.nb_channels, seconds()));
  }

  void fill_pause(const AVFrame& frame) {
    constexpr double shortest_pause = 0.1, longest_pause = 60;
    const double pause = time_of(frame) - start_ - seconds();
    if (pause < shortest_pause) return;
    if (pause > longest_pause)
      throw UserError(audio_.file().path(), "", "", fmt::format("has a pause of {:.0f} s in its sound", pause));
    for (auto& channel : channels_)
      channel.resize(channel.size() + static_cast<std::size_t>(std::llround(pause * rate_)), 0.0f);
  }

  const StreamDecoder& audio_;
  Resampler converter_;
  std::vector<std::vector<float>> channels_;
  std::vector<AVChannel> speakers_;
  int rate_ = 32000, format_ = -1;
  double start_ = 0;
};

// MP4 and MOV state where the sound ends; the last packet is padded to a whole frame beyond.
void trim_to_track(const StreamDecoder& audio, Sound& sound) {
  const AVStream& stream = audio.stream();
  const std::string_view container = audio.file().format().iformat->name;
  if (!container.starts_with("mov") || stream.duration == AV_NOPTS_VALUE) return;
  const std::int64_t length = av_rescale_q(stream.duration, stream.time_base, AVRational{1, sound.rate});
  sound = trimmed(sound, static_cast<std::size_t>(std::max<std::int64_t>(0, length)));
}

}  // namespace

DecodedSound decode_sound(const fs::path& path, double most_seconds) {
  StreamDecoder audio(path, AVMEDIA_TYPE_AUDIO);
  if (!audio.has_stream()) return {{32000, 0, {}}, 0, {}};
  SampleCollector samples(audio);
  while (samples.seconds() < most_seconds) {
    const AVFrame* frame = audio.next();
    if (!frame) break;
    if (frame->nb_samples > 0) samples.add(*frame);
  }
  DecodedSound decoded = samples.take();
  if (decoded.sound.channels == 0) throw UserError(path.string(), "", "", "holds no sound that can be decoded");
  trim_to_track(audio, decoded.sound);
  return decoded;
}

namespace {

struct StereoShare {
  double left = 0, right = 0;
};

bool share_of(AVChannel speaker, StereoShare& share) {
  const double half_power = std::sqrt(0.5);
  switch (speaker) {
    case AV_CHAN_FRONT_LEFT:
    case AV_CHAN_FRONT_LEFT_OF_CENTER:
    case AV_CHAN_STEREO_LEFT:
      share = {1, 0};
      return true;
    case AV_CHAN_FRONT_RIGHT:
    case AV_CHAN_FRONT_RIGHT_OF_CENTER:
    case AV_CHAN_STEREO_RIGHT:
      share = {0, 1};
      return true;
    case AV_CHAN_FRONT_CENTER:
      share = {half_power, half_power};
      return true;
    case AV_CHAN_BACK_LEFT:
    case AV_CHAN_SIDE_LEFT:
      share = {half_power, 0};
      return true;
    case AV_CHAN_BACK_RIGHT:
    case AV_CHAN_SIDE_RIGHT:
      share = {0, half_power};
      return true;
    case AV_CHAN_BACK_CENTER:
      share = {0.5, 0.5};
      return true;
    case AV_CHAN_LOW_FREQUENCY:
      share = {};
      return true;
    default:
      return false;
  }
}

}  // namespace

Sound mixed_to_stereo(const DecodedSound& decoded, const std::string& where) {
  std::vector<StereoShare> shares(decoded.speakers.size());
  StereoShare sum;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (!share_of(decoded.speakers[c], shares[c]))
      throw UserError(where, "", "",
                      fmt::format("has {} channels whose places are unknown; expected mono, stereo or a usual surround "
                                  "layout",
                                  shares.size()));
    sum.left += shares[c].left;
    sum.right += shares[c].right;
  }
  const double scale = 1 / std::max({1.0, sum.left, sum.right});
  const std::size_t length = decoded.sound.length();
  Sound stereo{decoded.sound.rate, 2, std::vector<float>(2 * length)};
  for (std::size_t i = 0; i < length; ++i) {
    double left = 0, right = 0;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      const double sample = decoded.sound.samples[c * length + i];
      left += shares[c].left * sample;
      right += shares[c].right * sample;
    }
    stereo.samples[i] = static_cast<float>(left * scale);
    stereo.samples[length + i] = static_cast<float>(right * scale);
  }
  return stereo;
}

}  // namespace h3::ffmpeg
