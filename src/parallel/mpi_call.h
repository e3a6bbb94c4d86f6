// Checks every MPI call and names it in the error.
#pragma once

#include <mpi.h>

#include "base/error.h"

namespace h3 {

inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError(fmt::format("{} failed: {}", call, std::string(text, static_cast<std::size_t>(length))));
}

}  // namespace h3

#define H3_MPI(call) ::h3::check_mpi(call, #call)
