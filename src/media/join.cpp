#include "media/join.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/clip_reader.h"
#include "media/frame_source.h"
#include "media/wav.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr int kRate = 32000, kFramesPerSecond = 24;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Where so many frames end, in samples.
std::size_t samples_of(std::int64_t frames) {
  return static_cast<std::size_t>((frames * kRate + kFramesPerSecond - 1) / kFramesPerSecond);
}

Sound sound_of(const fs::path& path) {
  if (path.empty()) return {};
  return path.extension() == ".wav" ? read_wav(path) : read_clip_sound(path);
}

Image first_frame(const JoinPart& part) {
  std::error_code error;
  if (!fs::is_directory(part.frames, error)) {
    const ClipInfo info = ClipReader(part.frames).info();
    if (std::abs(info.frame_rate - kFramesPerSecond) > 0.01)
      throw UserError(part.frames.string(), "frame rate", fmt::format("{:.3f}", info.frame_rate),
                      "24 frames a second, as renders have");
  }
  Image frame;
  if (!open_frames(part.frames)->next(frame)) throw UserError(part.frames.string(), "", "", "holds no frames");
  return frame;
}

// The size that all parts have.
Image check(const std::vector<JoinPart>& parts) {
  Image first;
  for (const JoinPart& part : parts) {
    const Image frame = first_frame(part);
    if (first.rgb.empty()) first = frame;
    if (frame.width != first.width || frame.height != first.height)
      throw UserError(part.frames.string(), "size", fmt::format("{}x{}", frame.width, frame.height),
                      fmt::format("{}x{} as {} has", first.width, first.height, parts.front().frames.string()));
    const Sound sound = sound_of(part.sound);
    if (sound.length() > 0 && (sound.rate != kRate || sound.channels != 2))
      throw UserError(part.sound.string(), "sound", fmt::format("{} channels at {} Hz", sound.channels, sound.rate),
                      "stereo at 32000 Hz, as renders have");
  }
  return first;
}

}  // namespace

JoinPart part_of(const fs::path& path) {
  if (!is_there(path)) throw UserError(path.string(), "", "", "is not there");
  std::error_code error;
  const fs::path named = path.has_filename() ? path : path.parent_path();
  if (!fs::is_directory(path, error)) return {named.stem().string(), path, path};
  const fs::path wav = fs::path(named).replace_extension(".wav"), clip = fs::path(named).replace_extension(".mp4");
  return {named.stem().string(), path, is_there(wav) ? wav : is_there(clip) ? clip : fs::path()};
}

JoinPart find_part(const fs::path& folder, const std::string& name) {
  const fs::path frames = folder / (name + ".frames"), clip = folder / (name + ".mp4");
  if (is_there(frames)) return part_of(frames);
  if (!is_there(clip))
    throw UserError(folder.string(), "scene", name, "a render with an MP4 or frames; there is none of that name");
  return part_of(clip);
}

JoinReport join(const std::vector<JoinPart>& parts, const fs::path& path, Mp4Options options) {
  const Image first = check(parts);
  options.width = first.width;
  options.height = first.height;
  options.trim_sound = true;
  Mp4Writer writer(path, options);
  std::vector<float> left, right;
  std::int64_t frames = 0;
  for (const JoinPart& part : parts) {
    const auto source = open_frames(part.frames);
    Image frame;
    while (source->next(frame)) {
      if (frame.width != first.width || frame.height != first.height)
        throw UserError(part.frames.string(), "frame", std::to_string(frames), "has another size than the first");
      writer.add_frame(frame.rgb);
      ++frames;
    }
    const Sound sound = sound_of(part.sound);
    for (const auto& [channel, samples] : {std::pair(0, &left), std::pair(1, &right)}) {
      const std::size_t begin = samples->size(), end = samples_of(frames);
      if (sound.length() > 0)
        samples->insert(samples->end(), sound.channel(channel).begin(), sound.channel(channel).end());
      samples->resize(std::max(begin, end), 0.0f);
    }
  }
  Sound whole;
  whole.samples = std::move(left);
  whole.samples.insert(whole.samples.end(), right.begin(), right.end());
  writer.add_sound(std::move(whole));
  writer.finish();
  return {first.width, first.height, frames};
}

}  // namespace h3
