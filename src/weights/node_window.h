// Memory for weights that all ranks of a node fill together and then read: one shared segment a node (DESIGN 3,
// "Weights"), or this process's own memory for a single rank. The segment has no name once all ranks have it, so that
// it goes with the last process, however that ends; one of a run that was killed before that goes with the next run.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

// A piece of memory that lives as long as somebody holds it.
class WeightBlock {
 public:
  virtual ~WeightBlock() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
  // "private memory", "/dev/shm" or the scratch folder, for the log.
  virtual std::string place() const = 0;
  // Whether its pages are a disk's, of which the host's memory keeps what fits.
  virtual bool on_disk() const = 0;
};

// The ranks of one node, as far as filling memory together needs them. Every rank makes the same calls in the same
// order.
class WeightMemory {
 public:
  virtual ~WeightMemory() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // A block that all ranks of the node see, zeroed. `what` names it in messages ("transformer"). UserError on every
  // rank when there is no room, with what is needed and what is there.
  virtual std::shared_ptr<WeightBlock> allocate(std::size_t bytes, std::string_view what) = 0;
  // Returns when every rank has called it: the ranks' texts, one behind the other, the same on all.
  virtual std::string join(std::string_view text) = 0;
};

// Memory of this process alone.
std::unique_ptr<WeightMemory> make_private_memory();

// How the ranks of a node talk while they set up a segment.
class NodeGroup {
 public:
  virtual ~NodeGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank's text, by rank.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
};

// Where a node's memory for weights may lie.
struct MemoryPlaces {
  std::filesystem::path scratch{};  // a folder of a disk for what does not fit; may be empty
  std::uint64_t reserve = 0;        // bytes of host memory that are left free while there is such a folder
  std::filesystem::path shm = "/dev/shm";
};

// Shared memory of a node's ranks, or a file below `scratch` where there is too little of it. A rank that is alone on
// its node gets private memory while the host has it.
std::unique_ptr<WeightMemory> make_node_memory(std::unique_ptr<NodeGroup> group, const MemoryPlaces& places);
// The same for the ranks of an MPI communicator of one node (Cluster::node_comm).
std::unique_ptr<WeightMemory> make_node_memory(MPI_Comm node, const MemoryPlaces& places);

}  // namespace h3
