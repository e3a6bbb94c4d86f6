// Clock and power of an NVIDIA card while something runs on it, by NVML. The library comes with the driver and is
// looked up when the program runs, so no build needs it; where it is missing, and on CPUs, nothing is known.
#pragma once

#include <memory>
#include <string>

namespace h3 {

// Medians over the time watched; 0: not known.
struct CardState {
  double megahertz = 0;  // of the multiprocessors
  double watts = 0;
};

class CardWatch {
 public:
  // `address`: the card's PCI address (compute/cuda/cuda_machine.h); "": no card.
  explicit CardWatch(const std::string& address);
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;
  // Watching goes on in a thread of its own between the two, every 20 ms.
  void start();
  CardState stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace h3
