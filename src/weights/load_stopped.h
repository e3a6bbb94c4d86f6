// Reading weights takes minutes where storage is slow, so that a run that has to stop gives it up half way: whoever
// reads is asked between reads, and every rank of the node leaves with this exception when one of them was told to.
#pragma once

#include <stdexcept>

namespace h3 {

class LoadStopped : public std::runtime_error {
 public:
  LoadStopped() : std::runtime_error("reading weights was stopped") {}
};

}  // namespace h3
