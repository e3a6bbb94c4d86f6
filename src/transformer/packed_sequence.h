// The one sequence that the transformer works on: text, then conditions, then the target's audio and video (spec/dit.md
// 3). It says of every row where it stands (position), which modulation it takes (class) and which input it comes from.
// All of it is global: ranks slice it by row range and never derive it again from their own rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transformer/clip.h"
#include "transformer/positions.h"
#include "transformer/time_classes.h"

namespace h3 {

// Size of a video latent: frames, height, width; height and width are even.
struct LatentSize {
  std::int64_t t = 0, h = 0, w = 0;
  std::int64_t rows() const { return t * (h / 2) * (w / 2); }
};

// A picture (or a run of latent frames) that the target shows at a given time, on the target's grid. `last` is the
// keyframe of the last frame; `frame` is any pixel frame, negative ones counting from the end. Audio latents given with
// it start at the same time.
struct Keyframe {
  enum class Anchor : std::uint8_t { first, last, frame };
  Anchor anchor = Anchor::first;
  std::int64_t frame = 0;  // Anchor::frame alone
  std::int64_t latent_frames = 1;
  std::int64_t audio_latents = 0;  // of one channel
};

// Something the target is to resemble: an image (one latent frame), a clip with or without soundtrack, or a sound.
struct PackedReference {
  enum class Kind : std::uint8_t { image, video, audio };
  Kind kind = Kind::image;
  LatentSize size;                 // image, video
  std::int64_t audio_latents = 0;  // audio, video; of one channel
};

struct SequenceRequest {
  std::span<const std::uint8_t> text_tags;  // [L], Modality values: text, or video for the rows of a vision block
  LatentSize target;
  std::int64_t audio_latents = 0;     // A, of one channel
  std::vector<Keyframe> keyframes;    // in packed order: the first frame's before the last frame's
  std::vector<PackedReference> references;  // in request order
};

struct PackedSequence {
  std::vector<Segment> segments;  // in packed order, covering all rows; none is empty

  std::vector<Position> positions;       // [S]
  std::vector<ModulationClass> classes;  // [S]

  // The packed rows of each kind of input in packed order: text states; video and audio rows, conditions first, the
  // target's last.
  std::vector<std::int32_t> text_rows, video_rows, audio_rows;

  Range text, target_audio, target_video;

  std::int64_t rows() const { return static_cast<std::int64_t>(positions.size()); }
  ClassSet present() const;  // the classes that occur
};

// Keyframes and references may come together; then keyframes precede references, and their times count from the
// target's start, which follows all references.
PackedSequence pack_sequence(const SequenceRequest& request);

// What the transformer takes: segments, classes and the rotary table of all rows.
Clip make_clip(const PackedSequence& sequence, std::int64_t rope_freqs, double rope_theta);

}  // namespace h3
