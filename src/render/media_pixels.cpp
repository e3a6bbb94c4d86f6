#include "render/media_pixels.h"

#include <algorithm>

#include "base/error.h"
#include "media/paced_clip.h"
#include "media/picture.h"
#include "media/resize.h"
#include "media/sound_reader.h"
#include "render/agreement.h"
#include "text/clip_sampling.h"

namespace h3 {

namespace {

void require_count(const std::filesystem::path& file, const char* what, std::int64_t found, std::int64_t expected) {
  if (found != expected)
    throw UserError(file.string(), what, std::to_string(found),
                    fmt::format("expected {}, as the file's headers say; is it damaged?", expected));
}

// An item as it will be on ranks that read nothing.
MediaPixels room_for(const MediaItem& item) {
  MediaPixels media;
  media.frames.assign(static_cast<std::size_t>(item.frames),
                      Image(static_cast<int>(item.size.width), static_cast<int>(item.size.height)));
  media.sound = {static_cast<int>(sample_rate), 2, std::vector<float>(static_cast<std::size_t>(2 * item.samples))};
  return media;
}

void broadcast(Session& s, void* data, std::size_t elements, DType dtype) {
  if (elements == 0) return;
  s.communicator().broadcast(s.queue(), Tensor(data, {static_cast<std::int64_t>(elements)}, dtype), 0);
}

}  // namespace

Image fitted(const MediaItem& item, const Image& picture) {
  const auto width = static_cast<int>(item.size.width), height = static_cast<int>(item.size.height);
  return item.covers ? cover(picture, width, height) : resize_lanczos(picture, width, height);
}

MediaPixels read_media(const MediaItem& item, const ReadOptions& options) {
  MediaPixels media;
  if (item.kind == MediaKind::picture) media.frames = {fitted(item, read_picture(item.picture, options))};
  if (item.kind == MediaKind::clip && item.covers) {
    PacedClip clip(item.picture, options);
    for (Image frame; static_cast<std::int64_t>(media.frames.size()) < item.frames && clip.next(frame);)
      media.frames.push_back(fitted(item, resize_lanczos(frame, clip.width(), clip.height())));  // square pixels
  } else if (item.kind == MediaKind::clip) {
    media.frames = read_clip_frames(item.picture, options, item.frames, static_cast<int>(item.size.width),
                                    static_cast<int>(item.size.height));
  }
  require_count(item.picture, "frames", static_cast<std::int64_t>(media.frames.size()), item.frames);
  if (item.samples == 0) return media;
  const auto cut = item.sound_frames > 0 ? std::optional(item.sound_frames) : std::nullopt;
  media.sound = read_sound(item.sound, options, cut);
  require_count(item.sound, "samples", static_cast<std::int64_t>(media.sound.length()), item.samples);
  return media;
}

std::vector<MediaPixels> share_media(Session& session, const Scene& scene, const std::vector<MediaItem>& items,
                                     const std::vector<bool>& wanted) {
  std::vector<MediaPixels> media;
  std::string error;
  try {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!wanted[i])
        media.emplace_back();
      else
        media.push_back(session.first() ? read_media(items[i], read_options(scene)) : room_for(items[i]));
    }
  } catch (const std::exception& e) {
    error = fmt::format("{}: {}", items[media.size()].field, e.what());
  }
  const std::string failed = first_error(session.communicator(), session.cluster().host(), error);
  if (!failed.empty()) throw SceneError(failed);
  for (MediaPixels& item : media) {
    for (Image& frame : item.frames) broadcast(session, frame.rgb.data(), frame.rgb.size(), DType::u8);
    broadcast(session, item.sound.samples.data(), item.sound.samples.size(), DType::f32);
  }
  return media;
}

std::vector<VisionPixels> vision_pixels(const std::vector<MediaItem>& items, const std::vector<MediaPixels>& media) {
  std::vector<VisionPixels> list;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].presented() || items[i].kind == MediaKind::sound) continue;
    const std::vector<Image>& frames = media[i].frames;
    if (items[i].kind == MediaKind::picture) {
      list.push_back(picture_patches(frames.front()));
      continue;
    }
    std::vector<Image> samples;
    for (const std::int64_t f : sampled_frames(items[i].frames)) samples.push_back(frames[static_cast<std::size_t>(f)]);
    list.push_back(clip_patches(samples));
  }
  return list;
}

}  // namespace h3
