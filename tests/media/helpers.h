// Shared by the tests of media: moving pictures and tones to write.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "media/image.h"
#include "media/sound.h"
#include "support/checks.h"

namespace h3::test {

// Smooth colours that differ by frame, so that an exchanged or lost frame shows.
inline Image moving_picture(int width, int height, int frame) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      image.pixel(x, y)[0] = static_cast<std::uint8_t>(40 + 7 * frame % 180);
      image.pixel(x, y)[1] = static_cast<std::uint8_t>(255 * x / width);
      image.pixel(x, y)[2] = static_cast<std::uint8_t>(255 * y / height);
    }
  return image;
}

// A tone a channel, 0.3 loud.
inline Sound tones(std::size_t length, double left_hz, double right_hz) {
  Sound sound{32000, 2, std::vector<float>(2 * length)};
  for (std::size_t i = 0; i < length; ++i) {
    const double t = 2 * M_PI * static_cast<double>(i) / sound.rate;
    sound.samples[i] = static_cast<float>(0.3 * std::sin(t * left_hz));
    sound.samples[length + i] = static_cast<float>(0.3 * std::sin(t * right_hz));
  }
  return sound;
}

// Runs a shell command; its output, or a test failure.
inline std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[512];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) output += buffer;
  EXPECT_EQ(pipe ? ::pclose(pipe) : -1, 0) << command;
  return output;
}

}  // namespace h3::test
