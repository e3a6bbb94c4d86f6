// What memory this process has taken, for the log.
#pragma once

#include <cstddef>

#include "compute/machine.h"

namespace h3 {

// The most resident host memory of this process so far, bytes.
std::size_t peak_resident_memory();

// Bytes of a GPU's memory that are taken now, by other processes too; 0 on the CPU, whose memory is the host's.
std::size_t device_memory_in_use(const Machine& machine);

}  // namespace h3
