#include "scene/geometry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace h3 {

static constexpr std::int64_t frames_per_group = 17, first_frames = 5;
static constexpr std::int64_t latents_per_group = 5, first_latents = 2;
static constexpr double widest = 4.0, tallest = 0.25;
static constexpr std::int64_t longest_side = 65536;

bool is_legal_frame_count(std::int64_t frames) {
  return frames >= first_frames && frames <= most_frames && (frames - first_frames) % frames_per_group == 0;
}

std::array<std::int64_t, 2> nearest_frame_counts(std::int64_t frames) {
  const std::int64_t bounded = std::clamp(frames, first_frames, most_frames - frames_per_group);
  const std::int64_t below = bounded - (bounded - first_frames) % frames_per_group;
  return {below, below + frames_per_group};
}

std::int64_t snapped_frame_count(std::int64_t frames) {
  CHECK_GE(frames, 1);
  CHECK_LE(frames, most_frames);
  if (frames <= first_frames) return first_frames;
  const std::int64_t groups = (frames - first_frames + frames_per_group - 1) / frames_per_group;
  return first_frames + groups * frames_per_group;
}

std::int64_t frames_for_seconds(double seconds) {
  H3_CHECK(seconds > 0 && seconds * frames_per_second <= static_cast<double>(most_frames));
  const double groups = (seconds * frames_per_second - first_frames) / frames_per_group;
  const auto nearest = static_cast<std::int64_t>(std::floor(groups + 0.5));
  return first_frames + frames_per_group * std::max<std::int64_t>(0, nearest);
}

std::int64_t latent_frames_of(std::int64_t frames) {
  H3_CHECK(is_legal_frame_count(frames), fmt::format("{} frames", frames));
  return (frames - first_frames) / frames_per_group * latents_per_group + first_latents;
}

// round(5 * frames / 3): a tie cannot occur, so whole numbers give the reference's double result.
std::int64_t audio_latents_of(std::int64_t frames) {
  return (5 * frames + 1) / 3;
}

std::int64_t muxed_samples_of(std::int64_t frames) {
  return (sample_rate * frames + frames_per_second - 1) / frames_per_second;
}

std::int64_t ClipGeometry::muxed_samples() const {
  return muxed_samples_of(frames);
}

ClipGeometry clip_geometry(std::int64_t width, std::int64_t height, std::int64_t frames) {
  H3_CHECK(!size_complaint(width, height), fmt::format("{}x{}", width, height));
  ClipGeometry g;
  g.width = width;
  g.height = height;
  g.frames = frames;
  g.latent_frames = latent_frames_of(frames);
  g.latent_height = height / pixels_per_latent;
  g.latent_width = width / pixels_per_latent;
  g.rows_per_frame = (g.latent_height / 2) * (g.latent_width / 2);
  g.audio_latents = audio_latents_of(frames);
  return g;
}

static std::optional<double> parse_positive(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

std::optional<double> parse_aspect(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return parse_positive(text);
  const auto w = parse_positive(text.substr(0, colon));
  const auto h = parse_positive(text.substr(colon + 1));
  if (!w || !h || !std::isfinite(*w / *h) || *w / *h <= 0) return std::nullopt;
  return *w / *h;
}

bool is_legal_aspect(double aspect) {
  return aspect >= tallest && aspect <= widest;
}

CanvasSize canvas_for_aspect(double aspect, const CanvasRule& rule) {
  H3_CHECK(is_legal_aspect(aspect), fmt::format("{}", aspect));
  const auto edge = static_cast<double>(rule.short_edge);
  double width = aspect >= 1 ? edge * aspect : edge;
  double height = aspect >= 1 ? edge : edge / aspect;
  const auto most = static_cast<double>(rule.max_pixels);
  if (width * height > most) {
    const double scale = std::sqrt(most / (width * height));
    width *= scale;
    height *= scale;
  }
  const auto side = [](double x) {
    return std::max(canvas_step, canvas_step * static_cast<std::int64_t>(std::nearbyint(x / canvas_step)));
  };
  CanvasSize size{side(width), side(height)};
  // On a small canvas rounding alone can leave the legal aspects.
  while (size_complaint(size.width, size.height)) (size.width > size.height ? size.width : size.height) -= canvas_step;
  return size;
}

namespace {

struct SizeCandidate {
  CanvasSize size;
  double distance = INFINITY;    // in pixels, squared
  double distortion = INFINITY;  // of the aspect
  bool operator<(const SizeCandidate& o) const {
    return distance != o.distance ? distance < o.distance : distortion < o.distortion;
  }
};

}  // namespace

// For each legal height the widths that come nearest compete; two sizes win.
std::array<CanvasSize, 2> nearest_sizes(std::int64_t width, std::int64_t height) {
  const auto bounded = [](std::int64_t side) { return std::clamp<std::int64_t>(side, 1, 2 * longest_side); };
  const auto w = static_cast<double>(bounded(width)), h = static_cast<double>(bounded(height));
  std::array<SizeCandidate, 2> best;
  const auto offer = [&](std::int64_t x, std::int64_t y) {
    const auto dx = static_cast<double>(x) - w, dy = static_cast<double>(y) - h;
    const SizeCandidate c{{x, y}, dx * dx + dy * dy, std::abs(static_cast<double>(x) / static_cast<double>(y) - w / h)};
    if (c < best[0]) {
      best = {c, best[0]};
    } else if (c < best[1]) {
      best[1] = c;
    }
  };
  for (std::int64_t y = canvas_step; y <= longest_side; y += canvas_step) {
    const std::int64_t narrowest = (y + 4 * canvas_step - 1) / (4 * canvas_step) * canvas_step;
    const std::int64_t broadest = std::min(longest_side, 4 * y);
    const std::int64_t below = std::clamp(bounded(width) / canvas_step * canvas_step, narrowest, broadest);
    for (std::int64_t x = below - canvas_step; x <= below + canvas_step; x += canvas_step)
      if (x >= narrowest && x <= broadest) offer(x, y);
  }
  return {best[0].size, best[1].size};
}

std::optional<std::string> size_complaint(std::int64_t width, std::int64_t height) {
  const auto whole = [](std::int64_t side) {
    return side >= canvas_step && side <= longest_side && side % canvas_step == 0;
  };
  std::string rule;
  if (!whole(width) || !whole(height)) {
    rule = fmt::format("multiples of {} from {} to {}", canvas_step, canvas_step, longest_side);
  } else if (!is_legal_aspect(static_cast<double>(width) / static_cast<double>(height))) {
    rule = "an aspect from 1:4 to 4:1";
  } else {
    return std::nullopt;
  }
  const auto [a, b] = nearest_sizes(width, height);
  return fmt::format("expected {}; the nearest legal sizes are {}x{} and {}x{}", rule, a.width, a.height, b.width,
                     b.height);
}

}  // namespace h3
