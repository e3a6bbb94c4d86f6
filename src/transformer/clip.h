// What the transformer needs to know about the packed sequence of one clip: its segments in packed order, the rotary
// table, and the modulation class of every row. Global facts: a rank slices them, it never recomputes them from its own
// rows (spec/dit.md 7.1).
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/shards.h"
#include "transformer/modulation.h"

namespace h3 {

enum class SegmentKind : std::uint8_t { text, visual_condition, audio_condition, target_audio, target_video };

// Rows [begin, end) of the packed sequence; `source` is the row of its own input (text states, condition rows, latents)
// that the first of them takes.
struct Segment {
  SegmentKind kind = SegmentKind::text;
  std::int64_t begin = 0, end = 0;
  std::int64_t source = 0;
};

struct Clip {
  std::int64_t rows = 0, text_rows = 0;
  std::vector<Segment> segments;      // in order, covering [0, rows)
  std::vector<float> cos, sin;        // [rows, 3 * rope_freqs]
  std::vector<std::int32_t> classes;  // ModulationClass of each row
};

// The part of `segment` inside `rows`, as a range of packed rows (empty where they do not meet).
inline Range overlap(const Segment& segment, Range rows) {
  const std::int64_t begin = segment.begin > rows.begin ? segment.begin : rows.begin;
  const std::int64_t end = segment.end < rows.end ? segment.end : rows.end;
  return begin < end ? Range{begin, end} : Range{begin, begin};
}

// The target rows of one kind inside `rows`, counted from the first of that kind.
inline Range target_rows(const Clip& clip, Range rows, SegmentKind kind) {
  for (const Segment& segment : clip.segments) {
    if (segment.kind != kind) continue;
    const Range mine = overlap(segment, rows);
    return {mine.begin - segment.begin, mine.end - segment.begin};
  }
  return {};
}

}  // namespace h3
