// Media that tests give to the program: the reference data's pictures, clips and sounds as files of exactly those
// pixels and samples.
#pragma once

#include <string>
#include <vector>

#include "cli/program.h"
#include "media/image.h"
#include "media/sound.h"

namespace h3::test {

// A clip of these frames at 24 a second, lossless, with a float32 soundtrack unless `sound` is empty. Needs the program
// ffmpeg (tools/setup.sh --tests).
std::string write_clip(const fs::path& file, const std::vector<Image>& frames, const Sound& sound = {32000, 2, {}});

// The frames of a stored PNG such as "png:clip" of the goldens `renders`.
std::vector<Image> golden_media(const std::string& name);
// A stored sound: "clip.sound" or "sound".
Sound golden_sound(const std::string& name);

// The reference data's media as files: "first.png", "last.png", "image.png", "shape.png", "clip.mkv" (with sound),
// "silent.mkv", "sound.wav".
void write_golden_media(const fs::path& folder);

// A smooth picture that is no other's: colours over both axes.
Image smooth_picture(int width, int height, int shade = 0);

}  // namespace h3::test
