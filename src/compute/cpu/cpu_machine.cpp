#include "compute/cpu/cpu_machine.h"

#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace h3 {

namespace {

// The value after `key` and a colon in a file of the proc file system; empty where there is none.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t colon = line.find(':');
    const std::size_t first = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (first != std::string::npos) return line.substr(first);
  }
  return {};
}

}  // namespace

std::string CpuMachine::name() const {
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  return model.empty() ? "CPU" : model;
}

// Operators give the same bits on every CPU, but for the C library's tanh, erf and the like, which choose their code by
// this level.
std::string CpuMachine::capability() const {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "x86-64-v3" : "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

std::string CpuMachine::library_versions() const {
  return fmt::format("glibc {}, GCC {}.{}, OpenMP {}", gnu_get_libc_version(), __GNUC__, __GNUC_MINOR__, _OPENMP);
}

std::size_t CpuMachine::free_memory() const {
  std::istringstream text(proc_value("/proc/meminfo", "MemAvailable"));
  std::size_t kilobytes = 0;
  text >> kilobytes;
  return kilobytes * 1024;
}

std::size_t CpuMachine::total_memory() const {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void* CpuMachine::allocate(std::size_t bytes, Place place) {
  H3_CHECK(place == Place::host, "device memory asked of the CPU");
  constexpr std::size_t kAlign = 256;
  void* data = std::aligned_alloc(kAlign, std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign));
  if (!data) throw RunError(fmt::format("out of memory: {} bytes of host memory", bytes));
  return data;
}

void CpuMachine::release(void* data, Place) {
  std::free(data);
}

void CpuMachine::copy(Queue&, const Tensor& from, const Tensor& to) {
  CHECK_EQ(name_of(from.dtype), name_of(to.dtype));
  CHECK_EQ(from.elements(), to.elements());
  H3_CHECK(from.contiguous() && to.contiguous(), "copy of a strided tensor");
  if (from.elements() != 0) std::memmove(to.data, from.data, from.bytes());
}

std::unique_ptr<Machine> make_cpu_machine() {
  return std::make_unique<CpuMachine>();
}

}  // namespace h3
