#include "render/version.h"

#include <spdlog/version.h>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>

#include <mpi.h>

#include "base/error.h"
#include "compute/machine.h"

namespace h3 {

std::string program_version() {
  return H3RENDER_VERSION;
}

std::string version_text() {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  const std::string mpi_text(mpi, static_cast<std::size_t>(length));
  return fmt::format("h3render {}\nMPI: {}\nspdlog {}.{}.{}, nlohmann-json {}.{}.{}, Boost {}.{}.{}\n{}",
                     program_version(), mpi_text.substr(0, mpi_text.find(',')), SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR,
                     SPDLOG_VER_PATCH, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                     NLOHMANN_JSON_VERSION_PATCH, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                     BOOST_VERSION % 100, make_cpu_machine()->library_versions());
}

}  // namespace h3
