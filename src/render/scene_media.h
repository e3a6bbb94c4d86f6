// A scene's keyframes, guides and references as the model takes them, in packed order: sizes, frames, sounds and rows,
// known from headers alone. What can be wrong with them is found here, for `check`, `plan`
// and the start of a render, so that nothing is loaded for a scene that cannot be rendered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "media/probe.h"
#include "scene/geometry.h"
#include "scene/scene.h"
#include "text/presentation.h"
#include "transformer/packed_sequence.h"
#include "weights/model_config.h"

namespace h3 {

struct MediaItem {
  enum class Role : std::uint8_t { first_frame, last_frame, guide, reference };
  Role role = Role::reference;
  std::string field;                     // "references[1].video"
  std::filesystem::path picture, sound;  // the files; empty where it has no pictures, no sound
  MediaKind kind = MediaKind::picture;

  CanvasSize size;                  // pixels as encoded; 0 for a sound
  bool covers = false;              // scaled until it covers the size and cut, not stretched (spec/text.md 3.1)
  std::int64_t frames = 0;          // that the text encoder may look at: 1 of a picture, of a clip at 24 a second
  std::int64_t encoded_frames = 0;  // the first of them, that become latents: 1, or 17n + 5
  std::int64_t samples = 0;         // of a channel at 32 kHz
  std::int64_t sound_frames = 0;    // the sound is cut to the length of so many frames; 0: it is whole
  std::int64_t at_frame = 0;        // guides: where they start
  std::int64_t latent_frames = 0;   // of the pictures
  std::int64_t audio_latents = 0;   // of a channel

  bool presented() const { return role != Role::guide; }  // whether the text encoder is shown it
  LatentSize latent() const { return {latent_frames, size.height / pixels_per_latent, size.width / pixels_per_latent}; }
  std::int64_t visual_rows() const { return latent().rows(); }
  std::int64_t audio_rows() const { return 2 * audio_latents; }
};

// Looks at the files of scenes; each file is read once however many scenes name it.
class MediaInspector {
 public:
  // A scene whose frames may be keyframes of those that come later.
  void know_scene(const std::string& scene, CanvasSize size) { scenes_[scene] = size; }

  // The size of the picture that decides the canvas: the first frame, or the last where it is alone.
  std::optional<CanvasSize> keyframe_size(const Scene& scene);

  // All media of a resolved scene in packed order: keyframes, guides, references. Throws UserError naming scene, field,
  // value and what would be right (spec/text.md 8.4, vae.md 20); adds what is doubtful to `warnings`.
  std::vector<MediaItem> items(const Scene& scene, const ClipGeometry& geometry, const ModelConfig& model,
                               std::vector<std::string>& warnings);

 private:
  const MediaFacts& facts(const Scene& scene, const std::string& field, const MediaFile& file);
  MediaFacts facts_of_frame(const FrameOfScene& of) const;

  std::map<std::string, MediaFacts> facts_;
  std::map<std::string, CanvasSize> scenes_;
};

// How a scene wants its files to be read.
ReadOptions read_options(const Scene& scene);

// The media as the text encoder is shown them (spec/text.md 2), and as the packed sequence lays them out (spec/dit.md
// 3.2).
std::vector<PresentedMedia> presented(const std::vector<MediaItem>& items);
std::vector<Keyframe> keyframes(const std::vector<MediaItem>& items);
std::vector<PackedReference> packed_references(const std::vector<MediaItem>& items);

// "references[1].video: clip, 39 frames of 256x192 (576 rows) with sound (130 rows)"
std::string text_of(const MediaItem& item);
// "references encoded: 2 pictures, 1 clip, 1 sound (384 rows of pictures, 122 of sound)"; empty without media.
std::string summary(const std::vector<MediaItem>& items);

}  // namespace h3
