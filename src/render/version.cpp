#include "render/version.h"

#include <spdlog/version.h>
#include <boost/version.hpp>

#include <mpi.h>

#include "base/error.h"
#include "checkpoint/hdf5_library.h"
#include "media/library_versions.h"

namespace h3 {

std::string program_version() {
  return H3RENDER_VERSION;
}

static std::string mpi_version() {
  char words[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(words, &length);
  const std::string text(words, static_cast<std::size_t>(length));
  return text.substr(0, text.find(','));
}

nlohmann::ordered_json library_versions(const Machine& machine) {
  return {{"compute", machine.library_versions()},
          {"mpi", mpi_version()},
          {"hdf5", hdf5_version()},
          {"ffmpeg", media_library_versions()}};
}

std::string version_text() {
  return fmt::format(
      "h3render {}\nMPI: {}\nHDF5 {}\nFFmpeg: {}\nspdlog {}.{}.{}, nlohmann-json {}.{}.{}, Boost {}.{}.{}\n{}",
      program_version(), mpi_version(), hdf5_version(), media_library_versions(), SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR,
      SPDLOG_VER_PATCH, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100, make_cpu_machine()->library_versions());
}

}  // namespace h3
