#include "media/packet_scan.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace h3::ffmpeg {

namespace {

// Packets of one stream by one of their two times: the one they are shown at, or the one they are decoded at.
struct TimedPackets {
  std::vector<std::int64_t> ticks;
  std::int64_t start = AV_NOPTS_VALUE, end = AV_NOPTS_VALUE, last_duration = 0, count = 0;

  void add(std::int64_t time, std::int64_t duration, bool keep) {
    if (time == AV_NOPTS_VALUE) return;
    ++count;
    if (keep) ticks.push_back(time);
    start = start == AV_NOPTS_VALUE ? time : std::min(start, time);
    const std::int64_t until = time + std::max<std::int64_t>(0, duration);
    if (end == AV_NOPTS_VALUE || until >= end) {
      end = until;
      last_duration = duration;
    }
  }
};

struct StreamSpan {
  TimedPackets shown, decoded;
  std::int64_t packets = 0;

  void add(const AVPacket& packet, bool keep) {
    if (packet.size == 0 || (packet.flags & AV_PKT_FLAG_DISCARD) != 0) return;
    ++packets;
    shown.add(packet.pts, packet.duration, keep);
    decoded.add(packet.dts, packet.duration, keep);
  }
  // Some containers give only some packets the time they are shown at; the times of decoding are as regular.
  std::int64_t start() const { return shown.count > 0 ? shown.start : decoded.start; }
  TimedPackets& best() { return shown.count == packets || decoded.count < packets ? shown : decoded; }
};

double seconds(std::int64_t ticks, AVRational unit) {
  return ticks == AV_NOPTS_VALUE ? 0 : static_cast<double>(ticks) * av_q2d(unit);
}

FrameTimes times_of(const TimedPackets& span, std::int64_t packets, const AVStream& stream) {
  std::vector<double> rates;
  for (const AVRational r : {stream.avg_frame_rate, stream.r_frame_rate})
    if (r.num > 0 && r.den > 0) rates.push_back(av_q2d(r));
  const std::int64_t count = span.count;
  if (count == 0 || count < packets) {  // packets without times: the container counts frames alone
    if (packets == 0 || rates.empty()) return {};
    return {packets, rates.front()};
  }
  std::int64_t end = span.end;
  if (span.last_duration <= 0) {  // as long as the others on average
    const std::int64_t length = span.ticks.back() - span.ticks.front();
    const double frame_seconds = rates.empty() ? 0 : 1 / rates.front();
    end = span.ticks.back() +
          (count > 1 ? (length + count / 2 - 1) / (count - 1) : std::llround(frame_seconds / av_q2d(stream.time_base)));
  }
  return {span.ticks, std::max(end, span.ticks.back()), {stream.time_base.num, stream.time_base.den}, rates};
}

// A time so far from the others comes from damage; what follows need not count with it.
void check_times(const Container& file, const TimedPackets& span, AVRational unit) {
  constexpr double longest_days = 10, seconds_a_day = 86400;
  if (span.count == 0) return;
  const double length = (static_cast<double>(span.end) - static_cast<double>(span.start)) * av_q2d(unit);
  if (length > longest_days * seconds_a_day || std::abs(seconds(span.start, unit)) > 365 * seconds_a_day)
    throw UserError(file.path(), "", "", fmt::format("is damaged: its timestamps span {:.0f} s", length));
}

// A file that was cut off often ends without an error; then its packets end before the time that its header states.
void check_complete(const Container& file, double held_seconds) {
  const AVFormatContext& format = file.format();
  if (format.duration_estimation_method != AVFMT_DURATION_FROM_STREAM || format.duration == AV_NOPTS_VALUE) return;
  const double promised = static_cast<double>(format.duration) / AV_TIME_BASE;
  if (held_seconds + 0.2 + 0.01 * promised < promised)
    throw UserError(
        file.path(), "", "",
        fmt::format("is truncated: it holds {:.2f} s of the {:.2f} s that its header states", held_seconds, promised));
}

}  // namespace

PacketScan scan_packets(const Container& file) {
  const int video = file.best_stream(AVMEDIA_TYPE_VIDEO), audio = file.best_stream(AVMEDIA_TYPE_AUDIO);
  std::vector<StreamSpan> spans(file.format().nb_streams);
  for (const Packet packet = new_packet(); file.next(*packet);) {
    const auto index = static_cast<std::size_t>(packet->stream_index);
    if (spans.size() <= index) spans.resize(index + 1);
    spans[index].add(*packet, packet->stream_index == video);
  }
  double held = 0;
  for (unsigned i = 0; i < file.format().nb_streams; ++i) {
    const AVRational unit = file.stream(static_cast<int>(i)).time_base;
    check_times(file, spans[i].best(), unit);
    held = std::max(held, seconds(spans[i].best().end, unit));
  }
  check_complete(file, held);

  PacketScan scan;
  if (video >= 0) {
    StreamSpan& stream = spans[static_cast<std::size_t>(video)];
    TimedPackets& span = stream.best();
    std::sort(span.ticks.begin(), span.ticks.end());
    scan.frames = times_of(span, stream.packets, file.stream(video));
    scan.video_start = seconds(stream.start(), file.stream(video).time_base);
    if (span.count == stream.packets) scan.frame_ticks = std::move(span.ticks);
  }
  if (audio >= 0) {
    StreamSpan& stream = spans[static_cast<std::size_t>(audio)];
    scan.sound_clock = av_q2d(file.stream(audio).time_base);
    scan.sound_start = seconds(stream.start(), file.stream(audio).time_base);
    scan.sound_end = seconds(stream.best().end, file.stream(audio).time_base);
  }
  return scan;
}

}  // namespace h3::ffmpeg
