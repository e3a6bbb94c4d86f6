// Scaling of 8-bit pictures, bit for bit as the references do it (spec/text.md 3.3): two separable filters in fixed
// point, with 8-bit values between the passes. A side that keeps its size is not filtered.
#pragma once

#include "media/image.h"

namespace h3 {

// Pillow's LANCZOS: keyframes, reference pictures, frames of reference clips. As Pillow 13 does, the pass over columns
// comes first where the height shrinks by more than twice what the width does.
Image resize_lanczos(const Image& image, int width, int height);

// PyTorch's antialiased bicubic for 8-bit tensors, rows first: what the text encoder's processor uses.
Image resize_bicubic(const Image& image, int width, int height);

// Scaled (Lanczos) until it covers width x height, then cut out of the middle (spec/text.md 3.1, second keyframe).
Image cover(const Image& image, int width, int height);

}  // namespace h3
