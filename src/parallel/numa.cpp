#include "parallel/numa.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace h3 {

namespace fs = std::filesystem;

namespace {

// The first line of a file, or "".
std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int> number_of(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int memory_nodes(const fs::path& nodes) {
  return static_cast<int>(parse_cpu_list(line_of(nodes / "has_memory")).size());
}

// Prefers the node's memory, and takes another's where it is full.
bool prefer_memory(int node) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(static_cast<std::size_t>(node) / kBits + 1, 0);
  mask.back() = 1UL << (static_cast<std::size_t>(node) % kBits);
  return ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), mask.size() * kBits + 1) == 0;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& list) {
  std::vector<int> cpus;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number_of(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= CPU_SETSIZE) return {};
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<NumaNode> numa_node_of(const std::string& pci_address, const fs::path& sys) {
  const fs::path nodes = sys / "devices/system/node";
  if (pci_address.empty() || memory_nodes(nodes) < 2) return std::nullopt;
  std::string address = pci_address;
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto number = number_of(line_of(sys / "bus/pci/devices" / address / "numa_node"));
  if (!number || *number < 0) return std::nullopt;
  NumaNode node{*number, parse_cpu_list(line_of(nodes / fmt::format("node{}", *number) / "cpulist"))};
  if (node.cpus.empty()) return std::nullopt;
  return node;
}

std::string bind_to(const NumaNode& node) {
  std::string done = fmt::format("NUMA node {}", node.number);
  cpu_set_t allowed, bound;
  CPU_ZERO(&bound);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (const int cpu : node.cpus)
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &bound);
  if (CPU_COUNT(&bound) == 0)
    done += ", but the launcher bound this rank to CPUs of another";
  else if (::sched_setaffinity(0, sizeof bound, &bound) != 0)
    done += fmt::format(", but its CPUs were refused ({})", std::strerror(errno));
  if (!prefer_memory(node.number)) done += fmt::format(", but its memory was refused ({})", std::strerror(errno));
  return done;
}

}  // namespace h3
