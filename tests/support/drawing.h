// Pictures and tones in the words of the nano model's captions: what a test gives as keyframe or reference, and then
// looks for in the render.
#pragma once

#include "media/image.h"
#include "media/sound.h"
#include "support/judge.h"

namespace h3::test {

struct Place {
  double x = 0, y = 0, radius = 0;  // pixels of a canvas of 256 x 192
};

// The middle of the canvas, and the size that the model knows the caption's shape by.
Place middle_place(const Caption& caption);

// The caption's shape in its colour on its ground.
Image drawn(const Caption& caption, const Place& place, int width = 256, int height = 192);

// Where the caption's shape stands when the clip begins and ends; bounces have no such places.
Place first_place(const Caption& caption);
Place last_place(const Caption& caption);

// The caption's tone on both sides, `seconds` long.
Sound tone_of(const Caption& caption, double seconds);

// 10 log10(255^2 / mean square), of equally large pictures.
double psnr(const Image& a, const Image& b);

}  // namespace h3::test
