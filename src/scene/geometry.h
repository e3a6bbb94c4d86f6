// Clip geometry: from a canvas and a frame count to every size that follows from them (latent frames, rows, audio
// latents, samples), and the rules that decide which canvases and counts are legal. Pure arithmetic in one place,
// so that the planner, the packer, both decoders and the muxer cannot disagree about a length.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

// Constants of the model's clock and grid (spec/dit.md 3.1).
inline constexpr std::int64_t frames_per_second = 24;
inline constexpr std::int64_t sample_rate = 32000;
inline constexpr std::int64_t samples_per_latent = 800;
inline constexpr std::int64_t canvas_step = 32;        // sides are multiples of it
inline constexpr std::int64_t pixels_per_latent = 16;  // along a side

// Trained lengths; others render with a warning.
inline constexpr std::int64_t shortest_trained = 124;
inline constexpr std::int64_t longest_trained = 362;

struct CanvasSize {
  std::int64_t width = 0, height = 0;
  bool operator==(const CanvasSize&) const = default;
};

// Where a scene gives no size, its aspect and these numbers of the model decide (released model: 768, 768 * 1344).
struct CanvasRule {
  std::int64_t short_edge = 768;
  std::int64_t max_pixels = 768 * 1344;
};

// All sizes of one clip. A plain record: clip_geometry makes it, nobody changes it.
struct ClipGeometry {
  std::int64_t width = 0, height = 0, frames = 0;
  std::int64_t latent_frames = 0;                    // T = 5n + 2
  std::int64_t latent_height = 0, latent_width = 0;  // h, w: pixels / 16, both even
  std::int64_t rows_per_frame = 0;                   // R = (h / 2)(w / 2) transformer rows of a latent frame
  std::int64_t audio_latents = 0;                    // A per channel

  std::int64_t video_rows() const { return latent_frames * rows_per_frame; }
  std::int64_t audio_rows() const { return 2 * audio_latents; }
  // Samples per channel as decoded, and what the muxer keeps of them: ceil(32000 * frames / 24) (spec/vae.md 18.2).
  std::int64_t decoded_samples() const { return audio_latents * samples_per_latent; }
  std::int64_t muxed_samples() const;
  double seconds() const { return static_cast<double>(frames) / static_cast<double>(frames_per_second); }
  bool operator==(const ClipGeometry&) const = default;
};

// Geometry of a legal canvas and frame count; both are checked (an internal error otherwise).
ClipGeometry clip_geometry(std::int64_t width, std::int64_t height, std::int64_t frames);

std::int64_t latent_frames_of(std::int64_t frames);  // 17n + 5 -> 5n + 2
std::int64_t audio_latents_of(std::int64_t frames);  // round(frames / 24 * 40)
std::int64_t muxed_samples_of(std::int64_t frames);  // ceil(32000 * frames / 24)

// Frame counts: 17n + 5 from 5 up to `most_frames`, an arithmetic limit far above what memory allows.
inline constexpr std::int64_t most_frames = 17 * 60000 + 5;
bool is_legal_frame_count(std::int64_t frames);
// The two legal counts around `frames`: (5, 22) below 22.
std::array<std::int64_t, 2> nearest_frame_counts(std::int64_t frames);
// The smallest legal count that holds `frames` frames, as the references snap (frames >= 1).
std::int64_t snapped_frame_count(std::int64_t frames);
// The legal count nearest to `seconds` at 24 frames a second; the longer one where both are as near (seconds > 0).
std::int64_t frames_for_seconds(double seconds);

// Width over height, from "16:9", "2.39:1" or "1.5". Nothing for text that is not a positive ratio.
std::optional<double> parse_aspect(std::string_view text);
// Aspects are legal from 1:4 to 4:1.
bool is_legal_aspect(double aspect);

// The canvas for an aspect (spec/dit.md 3.1): short edge by rule, scaled down to the rule's area, sides rounded to
// multiples of 32, ties to even; the longer side is cut where that alone makes the size illegal. The aspect is legal.
CanvasSize canvas_for_aspect(double aspect, const CanvasRule& rule);

// The two legal sizes nearest to a size, by distance and then by aspect; one of them is the size itself where it is
// legal.
std::array<CanvasSize, 2> nearest_sizes(std::int64_t width, std::int64_t height);
// What is wrong with a size, as "expected ..." text that names the nearest legal sizes; nothing where it is legal.
std::optional<std::string> size_complaint(std::int64_t width, std::int64_t height);

}  // namespace h3
