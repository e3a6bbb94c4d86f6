// Host memory that a run leaves to everything else on its node: page cache, frames that wait, other programs. Weights
// that would take it pass through memory one component after another, or lie in a file below --scratch.
#pragma once

#include <cstdint>
#include <string>

#include "render/run_options.h"
#include "weights/host_memory.h"

namespace h3 {

// Checks a value of --host-reserve, "auto" or GiB. Throws UserError naming `option`.
void parse_host_reserve(const std::string& value, const std::string& option);

// Bytes that --host-reserve asks for; `auto` is a thirty-second of the host's memory, at most 8 GiB.
std::uint64_t host_reserve(const RunOptions& options, const HostMemory& host);

}  // namespace h3
