#include "render/memory_use.h"

#include <sys/resource.h>

namespace h3 {

std::size_t peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

std::size_t device_memory_in_use(const Machine& machine) {
  if (machine.place() == Place::host) return 0;
  return machine.total_memory() - machine.free_memory();
}

}  // namespace h3
