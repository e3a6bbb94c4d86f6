#include "media/library_versions.h"

#include <fmt/format.h>

#include "media/ffmpeg.h"

namespace h3 {

static std::string words(const char* library, unsigned version) {
  return fmt::format("{} {}.{}.{}", library, AV_VERSION_MAJOR(version), AV_VERSION_MINOR(version),
                     AV_VERSION_MICRO(version));
}

std::string media_library_versions() {
  return fmt::format("{}, {}, {}, {}", words("avformat", avformat_version()), words("avcodec", avcodec_version()),
                     words("swscale", swscale_version()), words("swresample", swresample_version()));
}

}  // namespace h3
