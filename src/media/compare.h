// Two renders held against each other, frame by frame and sample by sample: which frames are equal, how far the
// others are apart, and the same for the sound. What a user asks after changing a precision, a card or a program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "media/picture_quality.h"
#include "media/sound.h"

namespace h3 {

struct SoundDifference {
  std::size_t length_a = 0, length_b = 0;  // samples a channel; the shorter length is compared
  int rate_a = 0, rate_b = 0, channels_a = 0, channels_b = 0;
  bool comparable = false;  // both there, with one rate and channel count
  bool equal = false;       // comparable, of one length, all samples the same bits
  double largest = 0;       // largest difference
  double snr = 0;           // in dB, a against the difference; infinite where there is none
  std::vector<double> channel_snr;
};

struct Comparison {
  int width = 0, height = 0;
  std::int64_t frames_a = 0, frames_b = 0;  // the first min(a, b) are compared
  std::vector<PictureDifference> frames;
  SoundDifference sound;

  std::int64_t equal_frames() const;
  int largest() const;
  double psnr() const;  // of all compared values together
  double ssim() const;  // mean over the frames
  bool equal() const;   // same frames and same sound, or both without sound
};

SoundDifference difference_of(const Sound& a, const Sound& b);

// Compares two sources (see open_frames()) in one pass. Throws UserError where one cannot be read or their frame sizes
// differ.
Comparison compare_renders(const std::filesystem::path& a, const std::filesystem::path& b);

// A summary, then one line a frame.
std::string table_of(const Comparison& comparison);
// The same as JSON; infinite ratios are null.
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace h3
