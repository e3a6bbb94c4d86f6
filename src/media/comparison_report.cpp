#include <fmt/format.h>

#include <cmath>

#include "media/compare.h"

namespace h3 {

static std::string decibels(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", value) : "inf";
}

static std::string frames_summary(const Comparison& c) {
  std::string text = fmt::format("frames  {} of {} equal, {}x{}", c.equal_frames(), c.frames.size(), c.width, c.height);
  if (c.frames_a != c.frames_b)
    text += fmt::format("; one has {} frames, the other {}: the first {} are compared", c.frames_a, c.frames_b,
                        c.frames.size());
  return text + fmt::format("\n        largest difference {}, PSNR {} dB, SSIM {:.5f}\n", c.largest(),
                            decibels(c.psnr()), c.ssim());
}

static std::string sound_summary(const SoundDifference& s) {
  if (s.length_a == 0 && s.length_b == 0) return "sound   none\n";
  if (s.length_a == 0 || s.length_b == 0) return "sound   only one of the two has sound\n";
  if (!s.comparable)
    return fmt::format("sound   not compared: {} Hz, {} channels against {} Hz, {} channels\n", s.rate_a, s.channels_a,
                       s.rate_b, s.channels_b);
  std::string text = s.equal ? "sound   equal" : fmt::format("sound   SNR {} dB", decibels(s.snr));
  if (!s.equal) {
    text += " (by channel";
    for (const double snr : s.channel_snr) text += fmt::format(" {}", decibels(snr));
    text += fmt::format("), largest difference {:.3g}", s.largest);
  }
  text += fmt::format(", {} samples", s.length_a);
  if (s.length_a != s.length_b) text += fmt::format(" against {}: the shorter length is compared", s.length_b);
  return text + "\n";
}

std::string table_of(const Comparison& c) {
  std::string text = frames_summary(c) + sound_summary(c.sound);
  text += "frame  equal  largest     PSNR     SSIM\n";
  for (std::size_t i = 0; i < c.frames.size(); ++i) {
    const PictureDifference& d = c.frames[i];
    text += fmt::format("{:5}  {:5}  {:7}  {:>7}  {:.5f}\n", i, d.equal ? "yes" : "no", d.largest, decibels(d.psnr()),
                        d.ssim);
  }
  return text;
}

static nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

static nlohmann::ordered_json to_json(const SoundDifference& s) {
  nlohmann::ordered_json json{{"comparable", s.comparable},
                              {"equal", s.equal},
                              {"samples", {s.length_a, s.length_b}},
                              {"rates", {s.rate_a, s.rate_b}},
                              {"channels", {s.channels_a, s.channels_b}}};
  if (!s.comparable) return json;
  json["largest_difference"] = s.largest;
  json["snr_db"] = finite(s.snr);
  for (const double snr : s.channel_snr) json["channel_snr_db"].push_back(finite(snr));
  return json;
}

nlohmann::ordered_json to_json(const Comparison& c) {
  nlohmann::ordered_json json{{"equal", c.equal()},
                              {"size", {c.width, c.height}},
                              {"frames", {c.frames_a, c.frames_b}},
                              {"frames_compared", c.frames.size()},
                              {"frames_equal", c.equal_frames()},
                              {"largest_difference", c.largest()},
                              {"psnr_db", finite(c.psnr())},
                              {"ssim", c.ssim()},
                              {"sound", to_json(c.sound)},
                              {"by_frame", nlohmann::ordered_json::array()}};
  for (const PictureDifference& d : c.frames)
    json["by_frame"].push_back(
        {{"equal", d.equal}, {"largest_difference", d.largest}, {"psnr_db", finite(d.psnr())}, {"ssim", d.ssim}});
  return json;
}

}  // namespace h3
