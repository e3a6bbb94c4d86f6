// Judges a render of the embedded nano model by what it shows and sounds like, in the words of its captions: colour,
// ground, shape and motion from the pixels, the tone of each channel from the samples. So a test can ask for a
// random caption and look whether the render obeys it, whatever the bits are.
#pragma once

#include <array>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/sound.h"

namespace h3::test {

// The vocabulary of the nano model's captions (jobs/nano/README.md).
struct Caption {
  std::string colour;  // red green blue yellow white cyan magenta orange
  std::string shape;   // circle square triangle ring
  std::string motion;  // "moves right", "moves left", "moves up", "moves down", grows, shrinks, "stays still", bounces
  std::string ground;  // black gray navy brown
  std::string tone;    // low middle high
};
Caption random_caption(std::mt19937& random);
// The caption in one of its four forms (0 to 3).
std::string text_of(const Caption& caption, int form);

// The outline of what moves in one frame.
struct Outline {
  double area = 0;            // pixels
  double x = 0, y = 0;        // centroid
  double fill = 0;            // area over that of the bounding box
  double core = 0;            // cover of the middle of the bounding box, 0 to 1
  bool touches_edge = false;  // then the shape may be cut
};

struct Verdict {
  std::string colour, shape, motion, ground;
  std::string left_tone, right_tone;  // "silent" where the channel is, "" for a tone of none of the captions
  std::string tone;                   // of the louder channel
  // What the words rest on, for messages.
  std::array<double, 3> colour_levels{}, ground_levels{};
  std::vector<Outline> outlines;
  std::array<double, 2> hz{}, rms{};
};
Verdict judge(std::span<const Image> frames, const Sound& sound);

// One GoogleTest failure for each fact that differs from the caption, with what was measured. `text` is the prompt.
void expect_shows(const Verdict& verdict, const Caption& caption, const std::string& text);

}  // namespace h3::test
