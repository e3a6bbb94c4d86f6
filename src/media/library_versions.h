// The FFmpeg libraries that decode media, which decide pixels and samples together with this program.
#pragma once

#include <string>

namespace h3 {

// "avformat 61.7.100, avcodec ..."
std::string media_library_versions();

}  // namespace h3
