#include "render/scene_media.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "scene/choices.h"
#include "scene/prompt_rules.h"
#include "text/clip_sampling.h"
#include "text/vision_input.h"

namespace h3 {

namespace {

// spec/text.md 8.1. The longest legal clip is a third of a frame group longer than 15 s, and renders may be references.
constexpr double kShortestTrained = 2.0;
constexpr double kLongest = static_cast<double>(longest_trained) / frames_per_second;
constexpr std::int64_t kFewestReferenceFrames = 22;  // below, the encoder has no legal length (spec/vae.md 6.5)

std::int64_t legal_frames_within(std::int64_t frames) {
  return (frames - 5) / 17 * 17 + 5;
}

// Sides of a reference picture (spec/text.md 3.1).
CanvasSize reference_picture_size(const MediaFacts& facts, ReferenceSize rule, const ClipGeometry& target,
                                  std::int64_t short_edge) {
  const double w = facts.width, h = facts.height;
  double scale = static_cast<double>(short_edge) / std::min(w, h);
  if (rule == ReferenceSize::max) scale = std::min(1.0, scale);
  if (rule == ReferenceSize::match)
    scale = std::min(1.0, std::sqrt(static_cast<double>(target.width * target.height) / (w * h)));
  const auto side = [&](double axis) {
    const double steps = std::nearbyint(axis * scale / static_cast<double>(canvas_step));
    return std::max(canvas_step, static_cast<std::int64_t>(steps) * canvas_step);
  };
  return {side(w), side(h)};
}

// One scene's media, item by item, in packed order.
class Itemizer {
 public:
  using Facts = std::function<const MediaFacts&(const std::string& field, const MediaFile& file)>;

  Itemizer(const Scene& scene, const ClipGeometry& target, const ModelConfig& model, Facts facts,
           std::vector<std::string>& warnings)
      : scene_(scene), target_(target), model_(model), facts_(std::move(facts)), warnings_(warnings) {}

  std::vector<MediaItem> take() {
    if (scene_.first_frame) add_keyframe(MediaItem::Role::first_frame, "first_frame", *scene_.first_frame);
    if (scene_.last_frame) add_keyframe(MediaItem::Role::last_frame, "last_frame", *scene_.last_frame);
    for (std::size_t i = 0; i < scene_.guides.size(); ++i) add_guide(fmt::format("guides[{}]", i), scene_.guides[i]);
    for (std::size_t i = 0; i < scene_.references.size(); ++i) {
      const Reference& r = scene_.references[i];
      const std::string field = fmt::format("references[{}].{}", i, name_of(r.kind));
      if (r.kind == ReferenceKind::image) add_picture(field, r.file);
      if (r.kind == ReferenceKind::video) add_clip(field, r);
      if (r.kind == ReferenceKind::audio) add_sound(field, r.file);
    }
    check_total(clip_seconds_, "clips");
    check_total(sound_seconds_, "sounds");
    return std::move(items_);
  }

 private:
  [[noreturn]] void refuse(const std::string& field, const std::string& value, const std::string& expected) const {
    throw UserError(scene_.where, field, value, expected);
  }
  void warn(const std::string& field, const std::string& text) { warnings_.push_back(field + ": " + text); }

  // The facts of a file that is to hold this.
  const MediaFacts& facts(const std::string& field, const MediaFile& file, MediaKind kind) const {
    const MediaFacts& found = facts_(field, file);
    const bool fits = kind == MediaKind::sound ? found.kind != MediaKind::picture : found.kind == kind;
    if (!fits) refuse(field, file.given, fmt::format("is a {}, expected a {}", name_of(found.kind), name_of(kind)));
    if (kind == MediaKind::sound && !found.has_sound()) refuse(field, file.given, "has no sound");
    return found;
  }

  void add_keyframe(MediaItem::Role role, const std::string& field, const MediaFile& file) {
    facts(field, file, MediaKind::picture);
    MediaItem item = on_target(role, field);
    item.covers = !items_.empty();
    take_picture(item, file);
    items_.push_back(item);
  }

  MediaItem on_target(MediaItem::Role role, const std::string& field) const {
    MediaItem item;
    item.role = role;
    item.field = field;
    return item;
  }

  void take_picture(MediaItem& item, const MediaFile& file) const {
    item.picture = file.path;
    item.size = {target_.width, target_.height};
    item.frames = item.encoded_frames = item.latent_frames = 1;
  }

  void add_guide(const std::string& field, const Guide& guide) {
    MediaItem item = on_target(MediaItem::Role::guide, field);
    item.covers = true;
    item.at_frame = guide.frame;
    item.kind = guide.image ? MediaKind::picture : guide.video ? MediaKind::clip : MediaKind::sound;
    if (guide.image) {
      facts(field + ".image", *guide.image, MediaKind::picture);
      take_picture(item, *guide.image);
    }
    if (guide.video) {
      const MediaFacts& clip = facts(field + ".video", *guide.video, MediaKind::clip);
      take_picture(item, *guide.video);
      // A clip too short for a legal length is its first frame (ComfyUI).
      if (clip.frames >= 5) {
        item.frames = item.encoded_frames = legal_frames_within(clip.frames);
        item.latent_frames = latent_frames_of(item.encoded_frames);
      }
    }
    const std::int64_t start = guide.frame < 0 ? guide.frame + target_.frames : guide.frame;
    const std::int64_t length = std::max<std::int64_t>(1, item.encoded_frames);
    if (start < 0 || start + length > target_.frames)
      refuse(field + ".frame", std::to_string(guide.frame),
             fmt::format("{} from there must lie within the {} frames of the clip",
                         length == 1 ? "1 frame" : fmt::format("{} frames", length), target_.frames));
    if (guide.audio) add_guide_sound(item, field + ".audio", *guide.audio, start);
    items_.push_back(item);
  }

  // The whole sound is encoded, and as many latents kept as the target has from `start` on (ComfyUI).
  void add_guide_sound(MediaItem& item, const std::string& field, const MediaFile& file, std::int64_t start) const {
    const MediaFacts& sound = facts(field, file, MediaKind::sound);
    check_length(field, sound.sound_seconds());
    item.sound = file.path;
    item.samples = sound_length(sound);
    const std::int64_t room = target_.audio_latents - (5 * start + 2) / 3;
    item.audio_latents = std::min(latents_of(item.samples), room);
    if (item.audio_latents < 1) refuse(field, file.given, "starts where the sound of the clip ends");
  }

  void add_picture(const std::string& field, const MediaFile& file) {
    const MediaFacts& picture = facts(field, file, MediaKind::picture);
    check_aspect(field, picture);
    MediaItem item;
    item.field = field;
    item.picture = file.path;
    item.size = reference_picture_size(picture, scene_.reference_size, target_, model_.reference_short_edge);
    item.frames = item.encoded_frames = item.latent_frames = 1;
    items_.push_back(item);
  }

  void add_clip(const std::string& field, const Reference& reference) {
    const MediaFacts& clip = facts(field, reference.file, MediaKind::clip);
    check_aspect(field, clip);
    if (clip.frames < kFewestReferenceFrames)
      refuse(field, fmt::format("{} frames at 24 a second", clip.frames),
             fmt::format("expected at least {} (0.92 s)", kFewestReferenceFrames));
    if (target_.frames < kFewestReferenceFrames)
      refuse(field, fmt::format("a clip beside frames = {}", target_.frames),
             fmt::format("a reference is cut to the length of the scene, which needs at least {} frames for it",
                         kFewestReferenceFrames));
    judge_length(field, clip.seconds());
    clip_seconds_ += clip.seconds();
    MediaItem item;
    item.field = field;
    item.kind = MediaKind::clip;
    item.picture = reference.file.path;
    const double aspect = static_cast<double>(clip.width) / static_cast<double>(clip.height);
    item.size = canvas_for_aspect(aspect, {model_.canvas_short_edge, model_.canvas_max_pixels});
    item.frames = std::min(clip.frames, target_.frames);
    item.encoded_frames = legal_frames_within(item.frames);
    item.latent_frames = latent_frames_of(item.encoded_frames);
    if (clip.frames > target_.frames)
      warn(field,
           fmt::format("its first {} of {} frames are taken, as many as the scene has", target_.frames, clip.frames));
    if (reference.soundtrack && clip.has_sound()) take_sound(item, field, reference.file, clip);
    items_.push_back(item);
  }

  void add_sound(const std::string& field, const MediaFile& file) {
    const MediaFacts& sound = facts(field, file, MediaKind::sound);
    judge_length(field, sound.sound_seconds());
    sound_seconds_ += sound.sound_seconds();
    MediaItem item;
    item.field = field;
    item.kind = MediaKind::sound;
    take_sound(item, field, file, sound);
    if (sound.sound_seconds() > target_.seconds() + 1.0 / frames_per_second)
      warn(field, fmt::format("its first {:.2f} of {:.2f} s are taken, as long as the scene is", target_.seconds(),
                              sound.sound_seconds()));
    items_.push_back(item);
  }

  void take_sound(MediaItem& item, const std::string& field, const MediaFile& file, const MediaFacts& facts) {
    item.sound = file.path;
    item.sound_frames = target_.frames;
    item.samples = sound_length(facts, target_.frames);
    item.audio_latents = latents_of(item.samples);
    if (item.samples == 0) refuse(field, file.given, "its sound has no sample");
    if (facts.channels == 1) warn(field, "its one channel is given to both sides");
  }

  static std::int64_t latents_of(std::int64_t samples) {
    return (samples + samples_per_latent - 1) / samples_per_latent;
  }

  void check_aspect(const std::string& field, const MediaFacts& facts) const {
    if (facts.width > 4 * facts.height || facts.height > 4 * facts.width)
      refuse(field, fmt::format("{}x{}", facts.width, facts.height), "expected an aspect from 1:4 to 4:1");
  }
  void check_length(const std::string& field, double seconds) const {
    if (seconds > kLongest) refuse(field, fmt::format("{:.2f} s", seconds), "expected 2 to 15 s");
  }
  void judge_length(const std::string& field, double seconds) {
    check_length(field, seconds);
    if (seconds < kShortestTrained)
      warn(field, fmt::format("lasts {:.2f} s; references of 2 to 15 s were trained", seconds));
  }
  void check_total(double seconds, const std::string& what) const {
    if (seconds > kLongest)
      refuse("references", fmt::format("{:.2f} s of {}", seconds, what), "expected at most 15 s of them together");
  }

  const Scene& scene_;
  const ClipGeometry& target_;
  const ModelConfig& model_;
  Facts facts_;
  std::vector<std::string>& warnings_;
  std::vector<MediaItem> items_;
  double clip_seconds_ = 0, sound_seconds_ = 0;
};

}  // namespace

ReadOptions read_options(const Scene& scene) {
  return {scene.alpha == AlphaRule::white, scene.downmix};
}

MediaFacts MediaInspector::facts_of_frame(const FrameOfScene& of) const {
  const auto parent = scenes_.find(of.scene);
  if (parent == scenes_.end())
    throw UserError("", "scene", of.scene,
                    "no scene of this run, and no finished render in the output folder, has this name");
  MediaFacts facts;
  facts.format = "PNG";
  facts.width = static_cast<int>(parent->second.width);
  facts.height = static_cast<int>(parent->second.height);
  return facts;
}

const MediaFacts& MediaInspector::facts(const Scene& scene, const std::string& field, const MediaFile& file) {
  const ReadOptions options = read_options(scene);
  const std::string key = fmt::format("{}{}{}", options.alpha_on_white, options.downmix,
                                      file.of ? "scene " + file.of->scene : file.path.string());
  const auto known = facts_.find(key);
  if (known != facts_.end()) return known->second;
  try {
    return facts_[key] = file.of ? facts_of_frame(*file.of) : probe_media(file.path, options);
  } catch (const UserError& e) {
    facts_.erase(key);
    throw UserError(scene.where, field, file.given, e.what());
  }
}

std::optional<CanvasSize> MediaInspector::keyframe_size(const Scene& scene) {
  if (!scene.has_keyframes()) return std::nullopt;
  const MediaFacts& found = scene.first_frame ? facts(scene, "first_frame", *scene.first_frame)
                                              : facts(scene, "last_frame", *scene.last_frame);
  if (found.kind == MediaKind::sound) return std::nullopt;  // items() says what is wrong
  return CanvasSize{found.width, found.height};
}

std::vector<MediaItem> MediaInspector::items(const Scene& scene, const ClipGeometry& geometry, const ModelConfig& model,
                                             std::vector<std::string>& warnings) {
  std::vector<MediaItem> items = Itemizer(
                                     scene, geometry, model,
                                     [&](const std::string& field, const MediaFile& file) -> const MediaFacts& {
                                       return facts(scene, field, file);
                                     },
                                     warnings)
                                     .take();
  const auto sounds = std::count_if(items.begin(), items.end(), [](const MediaItem& item) {
    return item.role == MediaItem::Role::reference && item.audio_latents > 0;
  });
  check_prompt_labels(scene, static_cast<std::size_t>(sounds));
  if (scene.posterior == Posterior::mean && !items.empty())
    warnings.push_back("posterior = mean: the release samples the latents of pictures and clips");
  return items;
}

std::vector<PresentedMedia> presented(const std::vector<MediaItem>& items) {
  std::vector<PresentedMedia> list;
  for (const MediaItem& item : items) {
    if (!item.presented()) continue;
    PresentedMedia media;
    media.soundtrack = item.kind == MediaKind::clip && item.audio_latents > 0;
    if (item.kind == MediaKind::picture) {
      media.grid = picture_grid(item.size.width, item.size.height);
    } else if (item.kind == MediaKind::clip) {
      const auto samples = static_cast<std::int64_t>(sampled_frames(item.frames).size());
      media.kind = PresentedMedia::Kind::clip;
      media.grid = clip_grid(samples, item.size.width, item.size.height);
      media.block_times = block_times(samples);
    } else {
      media.kind = PresentedMedia::Kind::sound;
    }
    list.push_back(std::move(media));
  }
  return list;
}

std::vector<Keyframe> keyframes(const std::vector<MediaItem>& items) {
  std::vector<Keyframe> list;
  for (const MediaItem& item : items) {
    if (item.role == MediaItem::Role::reference) continue;
    Keyframe keyframe;
    keyframe.anchor = item.role == MediaItem::Role::first_frame  ? Keyframe::Anchor::first
                      : item.role == MediaItem::Role::last_frame ? Keyframe::Anchor::last
                                                                 : Keyframe::Anchor::frame;
    keyframe.frame = item.at_frame;
    keyframe.latent_frames = item.latent_frames;
    keyframe.audio_latents = item.audio_latents;
    list.push_back(keyframe);
  }
  return list;
}

std::vector<PackedReference> packed_references(const std::vector<MediaItem>& items) {
  std::vector<PackedReference> list;
  for (const MediaItem& item : items) {
    if (item.role != MediaItem::Role::reference) continue;
    const auto kind = item.kind == MediaKind::picture ? PackedReference::Kind::image
                      : item.kind == MediaKind::clip  ? PackedReference::Kind::video
                                                      : PackedReference::Kind::audio;
    list.push_back({kind, item.latent(), item.audio_latents});
  }
  return list;
}

std::string text_of(const MediaItem& item) {
  std::string text = fmt::format("{}: {}", item.field, name_of(item.kind));
  if (item.encoded_frames > 0)
    text += fmt::format(", {}{}x{} ({} rows)",
                        item.encoded_frames > 1 ? fmt::format("{} frames of ", item.encoded_frames) : "",
                        item.size.width, item.size.height, item.visual_rows());
  if (item.audio_latents > 0)
    text += fmt::format("{} {:.2f} s ({} rows)", item.encoded_frames > 0 ? " with sound," : ",",
                        static_cast<double>(item.samples) / static_cast<double>(sample_rate), item.audio_rows());
  return text;
}

std::string summary(const std::vector<MediaItem>& items) {
  if (items.empty()) return "";
  std::array<int, 3> counts{};
  std::int64_t visual = 0, audio = 0;
  for (const MediaItem& item : items) {
    ++counts[static_cast<std::size_t>(item.kind)];
    visual += item.visual_rows();
    audio += item.audio_rows();
  }
  std::string list;
  for (const MediaKind kind : {MediaKind::picture, MediaKind::clip, MediaKind::sound}) {
    const int n = counts[static_cast<std::size_t>(kind)];
    if (n > 0) list += fmt::format("{}{} {}{}", list.empty() ? "" : ", ", n, name_of(kind), n == 1 ? "" : "s");
  }
  return fmt::format("{} ({} rows of pictures, {} of sound)", list, visual, audio);
}

}  // namespace h3
