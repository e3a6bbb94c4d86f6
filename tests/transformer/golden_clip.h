// A transformer's clip and inputs from the recorded arguments of a reference forward (goldens `transformer`, case
// CASE.in.*), independent of the program's own packing.
#pragma once

#include <algorithm>
#include <string>

#include "support/goldens.h"
#include "transformer/rotary.h"
#include "transformer/transformer.h"

namespace h3::test {

struct GoldenClip {
  Clip clip;
  std::vector<ClassTimesteps> steps;
  Tensor text, video, audio;                                 // all input rows, conditions first
  std::int64_t visual_conditions = 0, audio_conditions = 0;  // rows
  ConditionRows conditions() const {
    ConditionRows c;
    if (visual_conditions > 0) c.visual = video.rows(0, visual_conditions);
    if (audio_conditions > 0) c.audio = audio.rows(0, audio_conditions);
    return c;
  }
  Tensor target_video() const { return video.rows(visual_conditions, video.size(0)); }
  Tensor target_audio() const { return audio.rows(audio_conditions, audio.size(0)); }
};

inline GoldenClip golden_clip(const Goldens& g, const std::string& name, const TransformerConfig& config) {
  const auto in = [&](const char* what) { return g.at(name + ".in." + what); };
  GoldenClip c;
  c.text = in("encoder_hidden_states").at(0);
  c.video = in("hidden_states").at(0);
  c.audio = in("audio_hidden_states").at(0);
  const auto* tags = in("token_tags").as<std::int64_t>();
  const auto* time_index = in("timestep_indices").as<std::int64_t>();
  const auto* times = in("timestep").as<float>();
  const std::int64_t rows = in("token_tags").size(0);
  c.clip.rows = rows;
  c.clip.text_rows = c.text.size(0);

  // The targets are last: audio, then video, so the last rows of each kind tell the targets' times.
  const auto last = [&](const Tensor& indices) { return indices.as<std::int64_t>()[indices.size(0) - 1]; };
  const float t_video = times[time_index[last(in("video_indices"))]],
              t_audio = times[time_index[last(in("audio_indices"))]];
  c.steps = {{t_video, t_video, t_audio, std::max(t_video, 0.999f), 1.0f}};

  std::vector<SegmentKind> kinds(static_cast<std::size_t>(rows), SegmentKind::text);
  const auto mark = [&](const Tensor& indices, float t, SegmentKind target, SegmentKind condition,
                        std::int64_t& count) {
    for (std::int64_t i = 0; i < indices.size(0); ++i) {
      const std::int64_t row = indices.as<std::int64_t>()[i];
      const bool is_target = times[time_index[row]] == t;
      kinds[static_cast<std::size_t>(row)] = is_target ? target : condition;
      if (!is_target) ++count;
    }
  };
  mark(in("video_indices"), t_video, SegmentKind::target_video, SegmentKind::visual_condition, c.visual_conditions);
  mark(in("audio_indices"), t_audio, SegmentKind::target_audio, SegmentKind::audio_condition, c.audio_conditions);
  std::int64_t sources[5] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    const SegmentKind kind = kinds[static_cast<std::size_t>(row)];
    const bool same = !c.clip.segments.empty() && c.clip.segments.back().kind == kind;
    if (!same) c.clip.segments.push_back({kind, row, row, sources[static_cast<int>(kind)]});
    c.clip.segments.back().end = row + 1;
    ++sources[static_cast<int>(kind)];
    ModulationClass mod = kind == SegmentKind::text && tags[row] == 1 ? ModulationClass::text
                          : kind == SegmentKind::visual_condition     ? ModulationClass::visual_condition
                          : kind == SegmentKind::audio_condition      ? ModulationClass::audio_condition
                          : kind == SegmentKind::target_audio         ? ModulationClass::audio
                                                                      : ModulationClass::video;
    c.clip.classes.push_back(static_cast<std::int32_t>(mod));
  }

  const std::int64_t pairs = 3 * config.rope_freqs;
  c.clip.cos.resize(static_cast<std::size_t>(rows * pairs));
  c.clip.sin = c.clip.cos;
  const auto* p = in("position_ids").as<float>();
  std::vector<Position> positions;
  for (std::int64_t i = 0; i < rows; ++i) positions.push_back({p[3 * i], p[3 * i + 1], p[3 * i + 2]});
  fill_rotary_table(positions, inverse_frequencies(config.rope_freqs, config.rope_theta),
                    Tensor(c.clip.cos.data(), {rows, pairs}, DType::f32),
                    Tensor(c.clip.sin.data(), {rows, pairs}, DType::f32));
  return c;
}

}  // namespace h3::test
