// Where each rank of a group computes and what memory it finds there: for the plan in the log, and for the manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/communicator.h"

namespace h3 {

struct RankPlace {
  std::string host;
  std::string device;             // "NVIDIA H200"
  std::string address;            // PCI address of the GPU; "" on the CPU
  std::uint64_t free_memory = 0;  // bytes, where operators work
};

// Every rank's own place, by rank. Collective.
std::vector<RankPlace> gather_places(Communicator& communicator, const RankPlace& own);

// "0 on a1 (NVIDIA H200, 131.5 GiB free)".
std::string text_of(const RankPlace& place, std::size_t rank);

}  // namespace h3
