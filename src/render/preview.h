// A look at a scene while it is denoised: NAME.preview.png, a strip of a few frames made from the latents that the last
// step leads to, by the maps of vae/latent_colours.h. The file is replaced as a whole, changes nothing of the render,
// and goes when the scene is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "media/image.h"
#include "vae/latent_colours.h"

namespace h3 {

std::filesystem::path preview_path(const std::filesystem::path& folder, const std::string& scene);
// Where there is one and it can be removed.
void remove_preview(const std::filesystem::path& folder, const std::string& scene);

// Frames of a clip of `frames` latent frames side by side, the first and the last latent frame included; height and
// width in latents.
Image preview_strip(const LatentColours& colours, std::int64_t frames, std::int64_t height, std::int64_t width);

}  // namespace h3
