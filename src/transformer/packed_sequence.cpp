#include "transformer/packed_sequence.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "transformer/rotary.h"

namespace h3 {

namespace {

// Patch positions of a video block.
struct Grid {
  explicit Grid(const LatentSize& size) : height(spatial_axis(size.h, size.w)), width(spatial_axis(size.w, size.h)) {}
  std::vector<double> height, width;
};

// Appends segments to a sequence, in packed order.
class Packer {
 public:
  void add_text(std::span<const std::uint8_t> tags) {
    for (const std::uint8_t tag : tags) {
      const bool vision = tag == static_cast<std::uint8_t>(Modality::video);
      H3_CHECK(vision || tag == static_cast<std::uint8_t>(Modality::text), fmt::format("text tag {}", tag));
      add({static_cast<double>(sequence_.rows()), 0, 0}, vision ? ModulationClass::video : ModulationClass::text,
          sequence_.text_rows);
    }
    sequence_.text = end_segment(SegmentKind::text, 0);
  }

  void add_visual_condition(std::span<const double> times, const Grid& grid) {
    const auto source = static_cast<std::int64_t>(sequence_.video_rows.size());
    add_video(times, grid, ModulationClass::visual_condition);
    end_segment(SegmentKind::visual_condition, source);
  }

  void add_audio_condition(std::int64_t latents, double origin, const Grid& grid) {
    const auto source = static_cast<std::int64_t>(sequence_.audio_rows.size());
    add_audio(latents, origin, grid, ModulationClass::audio_condition);
    end_segment(SegmentKind::audio_condition, source);
  }

  // The target's audio and video, which end the sequence.
  PackedSequence finish(std::int64_t audio_latents, const LatentSize& size, double origin, const Grid& grid) {
    add_audio(audio_latents, origin, grid, ModulationClass::audio);
    sequence_.target_audio = end_segment(SegmentKind::target_audio, 0);
    add_video(temporal_axis(size.t, origin), grid, ModulationClass::video);
    sequence_.target_video = end_segment(SegmentKind::target_video, 0);
    return std::move(sequence_);
  }

 private:
  void add(const Position& position, ModulationClass c, std::vector<std::int32_t>& rows_of_input) {
    rows_of_input.push_back(static_cast<std::int32_t>(sequence_.rows()));
    sequence_.positions.push_back(position);
    sequence_.classes.push_back(c);
  }

  // One latent frame for each of `times`.
  void add_video(std::span<const double> times, const Grid& grid, ModulationClass c) {
    for (const double t : times)
      for (const double y : grid.height)
        for (const double x : grid.width) add({t, y, x}, c, sequence_.video_rows);
  }

  // `latents` of the left channel at the grid's left edge, then of the right one at its right edge.
  void add_audio(std::int64_t latents, double origin, const Grid& grid, ModulationClass c) {
    for (const double x : {grid.width.front(), grid.width.back()})
      for (std::int64_t k = 0; k < latents; ++k) add({origin + static_cast<double>(k), 0, x}, c, sequence_.audio_rows);
  }

  Range end_segment(SegmentKind kind, std::int64_t source) {
    const std::int64_t begin = sequence_.segments.empty() ? 0 : sequence_.segments.back().end;
    const std::int64_t end = sequence_.rows();
    if (begin < end) sequence_.segments.push_back({kind, begin, end, source});
    return {begin, end};
  }

  PackedSequence sequence_;
};

void add_keyframe(Packer& packer, const Keyframe& keyframe, const LatentSize& target, const Grid& grid, double origin) {
  double t = origin;
  if (keyframe.anchor == Keyframe::Anchor::last) t = last_frame_time(target.t, origin);
  if (keyframe.anchor == Keyframe::Anchor::frame) t = frame_time(keyframe.frame, target.t, origin);
  packer.add_visual_condition(temporal_axis(keyframe.latent_frames, t), grid);
  packer.add_audio_condition(keyframe.audio_latents, t, grid);
}

void add_reference(Packer& packer, const PackedReference& reference, const Grid& target_grid, double clock) {
  if (reference.kind == PackedReference::Kind::audio) {
    packer.add_audio_condition(reference.audio_latents, clock, target_grid);
    return;
  }
  const Grid grid(reference.size);
  packer.add_audio_condition(reference.audio_latents, clock, grid);
  packer.add_visual_condition(temporal_axis(reference.size.t, clock), grid);
}

// How far a reference moves the clock.
double advance_of(const PackedReference& reference) {
  const auto audio = static_cast<double>(reference.audio_latents);
  switch (reference.kind) {
    case PackedReference::Kind::image:
      return 1.0;
    case PackedReference::Kind::audio:
      return audio;
    case PackedReference::Kind::video:
      return std::max(audio, temporal_length(reference.size.t));
  }
  return 0;
}

// The time at which each reference starts, and the target's last.
std::vector<double> start_times(const SequenceRequest& request) {
  std::vector<double> starts{static_cast<double>(request.text_tags.size())};
  for (const PackedReference& reference : request.references) starts.push_back(starts.back() + advance_of(reference));
  return starts;
}

}  // namespace

ClassSet PackedSequence::present() const {
  ClassSet set{};
  for (const ModulationClass c : classes) set[static_cast<std::size_t>(c)] = true;
  return set;
}

PackedSequence pack_sequence(const SequenceRequest& request) {
  const Grid grid(request.target);
  const std::vector<double> starts = start_times(request);
  const double origin = starts.back();
  Packer packer;
  packer.add_text(request.text_tags);
  for (const Keyframe& keyframe : request.keyframes) add_keyframe(packer, keyframe, request.target, grid, origin);
  for (std::size_t i = 0; i < request.references.size(); ++i)
    add_reference(packer, request.references[i], grid, starts[i]);
  return packer.finish(request.audio_latents, request.target, origin, grid);
}

Clip make_clip(const PackedSequence& sequence, std::int64_t rope_freqs, double rope_theta) {
  Clip clip;
  clip.rows = sequence.rows();
  clip.text_rows = sequence.text.size();
  clip.segments = sequence.segments;
  for (const ModulationClass c : sequence.classes) clip.classes.push_back(static_cast<std::int32_t>(c));
  const Shape shape{clip.rows, 3 * rope_freqs};
  clip.cos.resize(static_cast<std::size_t>(shape.elements()));
  clip.sin.resize(clip.cos.size());
  fill_rotary_table(sequence.positions, inverse_frequencies(rope_freqs, rope_theta),
                    Tensor(clip.cos.data(), shape, DType::f32), Tensor(clip.sin.data(), shape, DType::f32));
  return clip;
}

}  // namespace h3
