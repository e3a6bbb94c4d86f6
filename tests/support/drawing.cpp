#include "support/drawing.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace h3::test {

namespace {

using Colour = std::array<double, 3>;

const std::map<std::string, Colour> colours{
    {"red", {230, 26, 26}},     {"green", {26, 191, 51}}, {"blue", {38, 76, 242}},     {"yellow", {242, 229, 26}},
    {"white", {242, 242, 242}}, {"cyan", {26, 217, 229}}, {"magenta", {229, 38, 217}}, {"orange", {250, 140, 13}}};
const std::map<std::string, Colour> grounds{
    {"black", {4, 4, 4}}, {"gray", {95, 95, 95}}, {"navy", {6.5, 10.5, 53}}, {"brown", {63, 38, 16.5}}};

// Distance to a shape of radius 1 around the origin, negative inside.
double distance(const std::string& shape, double x, double y) {
  if (shape == "circle") return std::hypot(x, y) - 1;
  if (shape == "ring") return std::abs(std::hypot(x, y) - 0.82) - 0.18;
  if (shape == "square") return std::max(std::abs(x), std::abs(y)) - 0.8;
  const double slope = std::sqrt(3.0) / 2;  // triangle
  return std::max({y, slope * x - y / 2, -slope * x - y / 2}) - 0.5;
}

}  // namespace

Image drawn(const Caption& caption, const Place& place, int width, int height) {
  constexpr double kSharpness = 1.5;  // of edges, a pixel
  const Colour &ground = grounds.at(caption.ground), &colour = colours.at(caption.colour);
  const double scale = width / 256.0;
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double r = place.radius * scale;
      const double d = r * distance(caption.shape, (x - place.x * scale) / r, (y - place.y * height / 192.0) / r);
      const double cover = 1 / (1 + std::exp(kSharpness * d));
      const double light = 1.2 - 0.4 * y / (height - 1);  // grounds get darker from top to bottom
      for (std::size_t c = 0; c < 3; ++c)
        image.pixel(x, y)[c] =
            static_cast<std::uint8_t>(std::lround(ground[c] * light * (1 - cover) + colour[c] * cover));
    }
  return image;
}

// Rings were drawn larger than other shapes.
Place middle_place(const Caption& caption) {
  return {128, 96, caption.shape == "ring" ? 52.0 : 40.0};
}

Place first_place(const Caption& caption) {
  Place p = middle_place(caption);
  if (caption.motion == "moves right") p.x = 54;
  if (caption.motion == "moves left") p.x = 202;
  if (caption.motion == "moves up") p.y = 146;
  if (caption.motion == "moves down") p.y = 46;
  if (caption.motion == "grows") p.radius *= 0.6;
  if (caption.motion == "shrinks") p.radius *= 1.4;
  return p;
}

Place last_place(const Caption& caption) {
  const Place first = first_place(caption), middle = middle_place(caption);
  return {2 * middle.x - first.x, 2 * middle.y - first.y, 2 * middle.radius - first.radius};
}

Sound tone_of(const Caption& caption, double seconds) {
  const double hz = caption.tone == "low" ? 220 : caption.tone == "middle" ? 440 : 880;
  const auto length = static_cast<std::size_t>(seconds * 32000);
  Sound sound{32000, 2, std::vector<float>(2 * length)};
  for (std::size_t i = 0; i < length; ++i)
    sound.samples[i] = sound.samples[length + i] =
        static_cast<float>(0.3 * std::sin(2 * M_PI * hz * static_cast<double>(i) / 32000));
  return sound;
}

double psnr(const Image& a, const Image& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    const double d = double(a.rgb[i]) - double(b.rgb[i]);
    sum += d * d;
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.rgb.size()) / std::max(sum, 1e-9));
}

}  // namespace h3::test
