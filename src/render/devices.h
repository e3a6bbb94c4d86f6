// Which GPU each rank computes on, and what carries data between ranks. One rank a GPU, by its number on the node;
// where each rank sees one GPU of its own (CUDA_VISIBLE_DEVICES, srun --gpus-per-task=1) it takes that. Sharing a GPU
// is legal only on request.
#pragma once

#include <memory>
#include <string>

#include "parallel/cluster.h"
#include "parallel/communicator.h"
#include "parallel/rank_group.h"
#include "render/run_options.h"

namespace h3 {

struct RankDevice {
  std::unique_ptr<Machine> machine;
  std::string address;  // PCI address of the GPU; "" on the CPU
  std::string binding;  // to the GPU's NUMA node, in words; "" where there is nothing to choose
};

// Makes this rank's machine by --device and --share-gpus. Throws UserError where there is no usable GPU.
RankDevice make_rank_device(const Cluster& cluster, const RunOptions& options);

struct Link {
  std::unique_ptr<Communicator> communicator;  // of the group
  std::unique_ptr<Communicator> world;         // of all ranks; null where the group is the world
  std::string transport;                       // "none", "peer", "nccl" or "host"
  std::string reason;                          // why, for the log
};

// Connects the ranks of each group. Collective over the world. Throws UserError on every rank where two ranks have one
// GPU without --share-gpus, or the transport asked for cannot serve.
Link connect_ranks(const Cluster& cluster, const RankGroup& group, const RankDevice& device, const RunOptions& options);

}  // namespace h3
