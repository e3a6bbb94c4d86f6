// How far apart two pictures of one size are: largest difference, PSNR over RGB, SSIM over luma.
#pragma once

#include "media/image.h"

namespace h3 {

struct PictureDifference {
  bool equal = true;
  int largest = 0;               // levels of 255
  double mean_square_error = 0;  // over all R, G, B values
  double ssim = 1;
  double psnr() const;  // in dB; infinite where the pictures are equal
};

// SSIM: BT.709 luma of the 8-bit values, windows of 8 x 8 every 4 pixels (one window where a side is under 8), mean of
// all windows. The pictures have one size.
PictureDifference difference_of(const Image& a, const Image& b);

double psnr_of(double mean_square_error);

}  // namespace h3
