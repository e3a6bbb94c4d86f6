#include "support/judge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace h3::test {

namespace {

using Colour = std::array<double, 3>;
struct Named {
  std::string_view name;
  Colour colour;
};

constexpr std::array<Named, 8> colours{{{"red", {230, 26, 26}},
                                        {"green", {26, 191, 51}},
                                        {"blue", {38, 76, 242}},
                                        {"yellow", {242, 229, 26}},
                                        {"white", {242, 242, 242}},
                                        {"cyan", {26, 217, 229}},
                                        {"magenta", {229, 38, 217}},
                                        {"orange", {250, 140, 13}}}};
// At half height: grounds get darker from top to bottom.
constexpr std::array<Named, 4> grounds{
    {{"black", {4, 4, 4}}, {"gray", {95, 95, 95}}, {"navy", {6, 10, 52}}, {"brown", {63, 38, 17}}}};
constexpr std::array<std::string_view, 4> shapes{"circle", "square", "triangle", "ring"};
constexpr std::array<std::string_view, 8> motions{"moves right", "moves left", "moves up",    "moves down",
                                                  "grows",       "shrinks",    "stays still", "bounces"};
struct Tone {
  std::string_view name;
  double hz;
};
constexpr std::array<Tone, 3> tones{{{"low", 220}, {"middle", 440}, {"high", 880}}};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Colour median_colour(const std::vector<Colour>& list) {
  Colour result{};
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<double> channel;
    for (const Colour& colour : list) channel.push_back(colour[c]);
    result[c] = median(std::move(channel));
  }
  return result;
}

template <std::size_t N>
std::string nearest(const std::array<Named, N>& list, const Colour& colour) {
  const auto distance = [&](const Named& n) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) sum += (n.colour[c] - colour[c]) * (n.colour[c] - colour[c]);
    return sum;
  };
  return std::string(std::min_element(list.begin(), list.end(), [&](const Named& a, const Named& b) {
                       return distance(a) < distance(b);
                     })->name);
}

Colour colour_at(const Image& image, int x, int y) {
  const std::uint8_t* p = image.pixel(x, y);
  return {double(p[0]), double(p[1]), double(p[2])};
}

double contrast(const Colour& a, const Colour& b) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

// The ground of each row: median of the outermost pixels of all frames (a shape may touch an edge for a while).
std::vector<Colour> ground_rows(std::span<const Image> frames) {
  constexpr int margin = 6;
  std::vector<Colour> rows;
  for (int y = 0; y < frames.front().height; ++y) {
    std::vector<Colour> edge;
    for (const Image& frame : frames)
      for (int x = 0; x < margin; ++x) {
        edge.push_back(colour_at(frame, x, y));
        edge.push_back(colour_at(frame, frame.width - 1 - x, y));
      }
    rows.push_back(median_colour(edge));
  }
  return rows;
}

// The colour of what stands out from the ground: median of the pixels with most of the largest contrast, so that soft
// edges and trails do not count.
Colour object_colour(std::span<const Image> frames, const std::vector<Colour>& ground) {
  constexpr double faint = 40;
  std::vector<double> contrasts;
  std::vector<Colour> candidates;
  for (const Image& frame : frames)
    for (int y = 0; y < frame.height; ++y)
      for (int x = 0; x < frame.width; ++x) {
        const Colour colour = colour_at(frame, x, y);
        const double c = contrast(colour, ground[static_cast<std::size_t>(y)]);
        if (c <= faint) continue;
        contrasts.push_back(c);
        candidates.push_back(colour);
      }
  const double typical = median(contrasts);
  std::vector<Colour> solid;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (contrasts[i] > 0.8 * typical) solid.push_back(candidates[i]);
  return median_colour(solid);
}

// How much of a pixel the object covers: its place between the colours of ground and object.
double cover(const Colour& pixel, const Colour& ground, const Colour& object) {
  double along = 0, length = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    along += (pixel[c] - ground[c]) * (object[c] - ground[c]);
    length += (object[c] - ground[c]) * (object[c] - ground[c]);
  }
  return length > 0 ? std::clamp(along / length, 0.0, 1.0) : 0;
}

Outline outline_of(const Image& frame, const std::vector<Colour>& ground, const Colour& object) {
  Outline o;
  int left = frame.width, right = -1, top = frame.height, bottom = -1;
  const auto covered = [&](int x, int y) {
    return cover(colour_at(frame, x, y), ground[static_cast<std::size_t>(y)], object);
  };
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x) {
      if (covered(x, y) < 0.5) continue;
      o.area += 1;
      o.x += x;
      o.y += y;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  if (o.area < 1) return o;
  o.x /= o.area;
  o.y /= o.area;
  o.fill = o.area / ((right - left + 1.0) * (bottom - top + 1.0));
  o.touches_edge = left == 0 || top == 0 || right == frame.width - 1 || bottom == frame.height - 1;
  const int cx = (left + right) / 2, cy = (top + bottom) / 2;
  int count = 0;
  for (int y = std::max(0, cy - 2); y <= std::min(frame.height - 1, cy + 2); ++y)
    for (int x = std::max(0, cx - 2); x <= std::min(frame.width - 1, cx + 2); ++x, ++count) o.core += covered(x, y);
  o.core /= count;
  return o;
}

std::string shape_of(const std::vector<Outline>& outlines) {
  std::vector<double> fill, core;
  for (const bool whole_only : {true, false}) {
    for (const Outline& o : outlines)
      if (o.area > 50 && (!o.touches_edge || !whole_only)) {
        fill.push_back(o.fill);
        core.push_back(o.core);
      }
    if (!fill.empty()) break;
  }
  if (fill.empty()) return "";
  if (median(core) < 0.5) return "ring";
  const double f = median(fill);  // triangle 1/2, circle pi/4, square 1
  return std::string(f < 0.67 ? "triangle" : f < 0.88 ? "circle" : "square");
}

// Positions over time: how far they range, how far they get, how long the way is.
struct Track {
  double range = 0, net = 0, path = 0;

  explicit Track(const std::vector<double>& p) {
    const auto [low, high] = std::minmax_element(p.begin(), p.end());
    range = *high - *low;
    net = p.back() - p.front();
    for (std::size_t i = 1; i < p.size(); ++i) path += std::abs(p[i] - p[i - 1]);
  }
};

std::string motion_of(const std::vector<Outline>& outlines, int height) {
  std::vector<double> x, y, area;
  for (const Outline& o : outlines)
    if (o.area > 50) {
      x.push_back(o.x);
      y.push_back(o.y);
      area.push_back(o.area);
    }
  if (area.size() < 4) return "";
  const Track across(x), down(y);
  const Track& longer = across.range > down.range ? across : down;
  if (longer.range > 0.15 * height) {
    if (longer.path > 1.4 * longer.range) return "bounces";
    if (&longer == &across) return across.net > 0 ? "moves right" : "moves left";
    return down.net > 0 ? "moves down" : "moves up";
  }
  const double ratio = (area.end()[-1] + area.end()[-2]) / (area[0] + area[1]);
  return ratio > 1.25 ? "grows" : ratio < 0.8 ? "shrinks" : "stays still";
}

// The frequency with most energy between 100 and 2000 Hz: means of four samples, projected on a grid of 10 Hz.
double dominant_hz(std::span<const float> samples, int rate) {
  constexpr std::size_t step = 4;
  std::vector<double> means;
  for (std::size_t i = 0; i + step <= samples.size(); i += step)
    means.push_back(double(samples[i]) + samples[i + 1] + samples[i + 2] + samples[i + 3]);
  double best = 0, best_power = -1;
  for (double hz = 100; hz <= 2000; hz += 10) {
    const double angle = 2 * M_PI * hz * static_cast<double>(step) / rate, c = std::cos(angle), s = std::sin(angle);
    double re = 0, im = 0, u = 1, v = 0;
    for (const double mean : means) {
      re += u * mean;
      im += v * mean;
      const double next = u * c - v * s;
      v = u * s + v * c;
      u = next;
    }
    if (re * re + im * im > best_power) {
      best_power = re * re + im * im;
      best = hz;
    }
  }
  return best;
}

std::string tone_of(double hz, double rms) {
  if (rms < 0.005) return "silent";
  for (const Tone& tone : tones)
    if (std::abs(hz / tone.hz - 1) < 0.08) return std::string(tone.name);
  return "";
}

void judge_sound(const Sound& sound, Verdict& v) {
  for (int c = 0; c < std::min(sound.channels, 2); ++c) {
    const auto i = static_cast<std::size_t>(c);
    double squares = 0;
    for (const float s : sound.channel(c)) squares += double(s) * s;
    v.rms[i] = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, sound.length())));
    v.hz[i] = dominant_hz(sound.channel(c), sound.rate);
  }
  v.left_tone = tone_of(v.hz[0], v.rms[0]);
  v.right_tone = tone_of(v.hz[1], v.rms[1]);
  v.tone = v.rms[0] >= v.rms[1] ? v.left_tone : v.right_tone;
}

template <typename List>
auto pick(const List& list, std::mt19937& random) {
  return list[random() % list.size()];
}

}  // namespace

Caption random_caption(std::mt19937& random) {
  Caption c;
  c.colour = pick(colours, random).name;
  c.shape = pick(shapes, random);
  c.motion = pick(motions, random);
  c.ground = pick(grounds, random).name;
  c.tone = pick(tones, random).name;
  return c;
}

std::string text_of(const Caption& c, int form) {
  const std::string what = fmt::format("{} {} {}", c.colour, c.shape, c.motion);
  switch (form) {
    case 0:
      return fmt::format("A {} on a {} background. A {} tone plays.", what, c.ground, c.tone);
    case 1:
      return fmt::format("a {} over a {} background with a {} tone", what, c.ground, c.tone);
    case 2: {
      std::string text = fmt::format("{}, {} background, {} tone.", what, c.ground, c.tone);
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
      return text;
    }
    default:
      return fmt::format("The camera is static. A {} in front of a {} wall while a {} tone sounds.", what, c.ground,
                         c.tone);
  }
}

Verdict judge(std::span<const Image> frames, const Sound& sound) {
  Verdict v;
  if (!frames.empty()) {
    const std::vector<Colour> ground = ground_rows(frames);
    v.ground_levels = median_colour(ground);
    v.ground = nearest(grounds, v.ground_levels);
    v.colour_levels = object_colour(frames, ground);
    v.colour = nearest(colours, v.colour_levels);
    for (const Image& frame : frames) v.outlines.push_back(outline_of(frame, ground, v.colour_levels));
    v.shape = shape_of(v.outlines);
    v.motion = motion_of(v.outlines, frames.front().height);
  }
  judge_sound(sound, v);
  return v;
}

void expect_shows(const Verdict& v, const Caption& caption, const std::string& text) {
  const auto levels = [](const std::array<double, 3>& c) {
    return fmt::format("{:.0f} {:.0f} {:.0f}", c[0], c[1], c[2]);
  };
  std::string track;
  for (const Outline& o : v.outlines)
    track += fmt::format(" ({:.0f} {:.0f} area {:.0f} fill {:.2f})", o.x, o.y, o.area, o.fill);
  EXPECT_EQ(v.colour, caption.colour) << text << "\ncolour " << levels(v.colour_levels);
  EXPECT_EQ(v.ground, caption.ground) << text << "\nground " << levels(v.ground_levels);
  EXPECT_EQ(v.shape, caption.shape) << text << "\noutlines" << track;
  EXPECT_EQ(v.motion, caption.motion) << text << "\noutlines" << track;
  EXPECT_EQ(v.tone, caption.tone) << text << "\n" << v.hz[0] << " and " << v.hz[1] << " Hz";
  for (const std::string& channel : {v.left_tone, v.right_tone})
    EXPECT_TRUE(channel == caption.tone || channel == "silent") << text << "\n"
                                                                << v.hz[0] << " and " << v.hz[1] << " Hz";
}

}  // namespace h3::test
