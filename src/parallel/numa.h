// The NUMA node that a GPU is attached to. A rank that computes and allocates there keeps its copies to and from the
// GPU, and the host buffers that MPI moves, off the link between the sockets.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace h3 {

struct NumaNode {
  int number = 0;
  std::vector<int> cpus;
};

// CPUs of the kernel's list form, "0-3,8": {0, 1, 2, 3, 8}. Anything else gives none.
std::vector<int> parse_cpu_list(const std::string& list);

// The node of the device at `pci_address` ("0000:5D:00.0", any case). Nothing where the host has one node alone or does
// not tell. `sys` is where the kernel shows devices.
std::optional<NumaNode> numa_node_of(const std::string& pci_address, const std::filesystem::path& sys = "/sys");

// Binds the calling thread, and threads that it starts from now on, to those CPUs of the node that it may use, and
// makes the node the first choice for their new memory. Returns what was done in words. A launcher's binding to other
// nodes stays and is named.
std::string bind_to(const NumaNode& node);

}  // namespace h3
