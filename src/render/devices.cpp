#include "render/devices.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "parallel/mpi_communicator.h"
#include "parallel/numa.h"
#include "parallel/solo_communicator.h"
#ifdef H3RENDER_WITH_CUDA
#include "compute/cuda/cuda_machine.h"
#include "parallel/nccl_communicator.h"
#include "parallel/peer_communicator.h"
#endif

namespace h3 {

// The node's cores divided among its ranks, unless OMP_NUM_THREADS says otherwise. Threads change no bit.
static RankDevice make_cpu(const Cluster& cluster) {
  if (!std::getenv("OMP_NUM_THREADS")) omp_set_num_threads(std::max(1, omp_get_num_procs() / cluster.node_size()));
  return {make_cpu_machine(), "", ""};
}

#ifdef H3RENDER_WITH_CUDA

static RankDevice make_gpu(const Cluster& cluster, const RunOptions& options, int count) {
  int device = cluster.node_rank();
  // One visible GPU and several ranks: either each rank sees its own, or they are to share; connect_ranks tells.
  if (count == 1 || options.share_gpus) device %= count;
  if (device >= count)
    throw UserError("--device", "", "cuda",
                    fmt::format("{} has {} GPUs for {} ranks; start one rank a GPU, or give --share-gpus",
                                cluster.host(), count, cluster.node_size()));
  CudaOptions cuda;
  cuda.attention = options.attention == "cudnn" ? AttentionEngine::cudnn
                   : options.attention == "own" ? AttentionEngine::own
                                                : AttentionEngine::automatic;
  // Before the driver starts its threads and takes its memory.
  const std::string address = cuda_bus_id(device);
  const auto node = numa_node_of(address);
  const std::string binding = node ? bind_to(*node) : "";
  return {make_cuda_machine(device, cuda), address, binding};
}

RankDevice make_rank_device(const Cluster& cluster, const RunOptions& options) {
  const int count = options.device == "cpu" ? 0 : cuda_device_count();
  if (count > 0) return make_gpu(cluster, options, count);
  if (options.device == "cuda")
    throw UserError("--device", "", "cuda",
                    cluster.host() + " shows no GPU (nvidia-smi and CUDA_VISIBLE_DEVICES tell more)");
  return make_cpu(cluster);
}

#else

RankDevice make_rank_device(const Cluster& cluster, const RunOptions& options) {
  if (options.device == "cuda")
    throw UserError("--device", "", "cuda", "this build has no CUDA backend; configure with -DH3RENDER_CUDA=ON");
  return make_cpu(cluster);
}

#endif

// "rank 2 and rank 3 on HOST" for the first GPU that two ranks have, or "".
static std::string shared_gpu(Communicator& world, const std::string& host, const std::string& address) {
  std::map<std::string, std::size_t> seen;
  const auto all = world.gather_text(address.empty() ? "" : host + " " + address);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    const auto [it, fresh] = seen.emplace(all[r], r);
    if (!fresh) return fmt::format("ranks {} and {} have one GPU ({})", it->second, r, all[r]);
  }
  return "";
}

#ifdef H3RENDER_WITH_CUDA

// NCCL, or MPI where ranks share a GPU; behind copies between the GPUs where these are wanted and possible. `obstacle`
// says why they are impossible.
static Link connect_gpus(MPI_Comm group, Machine& machine, const std::string& shared, const std::string& transport,
                         std::string& obstacle) {
  Link link;
  if (shared.empty())
    link = {std::make_unique<NcclCommunicator>(group, machine), nullptr, "nccl",
            NcclCommunicator::version() + ", every rank has a GPU of its own"};
  else
    link = {std::make_unique<MpiCommunicator>(group, machine), nullptr, "host", shared};
  if (transport != "peer") return link;
  if (auto peer = PeerCommunicator::connect(group, machine, link.communicator, obstacle))
    link = {std::move(peer), nullptr, "peer", "copy engines between GPUs of one node, all else by " + link.transport};
  else
    link.reason += "; no peer copies: " + obstacle;
  return link;
}

#endif

Link connect_ranks(const Cluster& cluster, const RankGroup& group, const RankDevice& device,
                   const RunOptions& options) {
  Machine& machine = *device.machine;
  if ((options.transport == "nccl" || options.transport == "peer") && machine.place() == Place::host)
    throw UserError("--transport", "", options.transport, "it moves data between GPUs; use host or auto on CPUs");
  if (cluster.size() == 1) return {std::make_unique<SoloCommunicator>(machine), nullptr, "none", "one rank"};
  auto world = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD, machine);
  const std::string shared = machine.place() == Place::host ? "" : shared_gpu(*world, cluster.host(), device.address);
  if (!shared.empty() && !options.share_gpus)
    throw UserError("--device", "", "cuda", shared + "; start one rank a GPU, or give --share-gpus");
  if (!shared.empty() && options.transport == "nccl")
    throw UserError("--transport", "", "nccl", shared + ", which NCCL refuses; use --transport host");
  Link link;
  std::string obstacle;
  if (group.size() == 1) {
    link = {std::make_unique<SoloCommunicator>(machine), nullptr, "none", "one rank a group"};
  } else if (machine.place() == Place::host) {
    link = {nullptr, nullptr, "host", "CPU ranks exchange through MPI"};
  } else if (options.transport == "host") {
    link = {nullptr, nullptr, "host", "asked for"};
  } else {
#ifdef H3RENDER_WITH_CUDA
    link = connect_gpus(group.comm(), machine, shared, options.transport, obstacle);
#else
    throw RunError("a GPU without the CUDA backend");
#endif
  }
  if (options.transport == "peer")
    for (const std::string& problem : world->gather_text(obstacle))
      if (!problem.empty())
        throw UserError("--transport", "", "peer", "impossible here (" + problem + "); use auto, nccl or host");
  if (!link.communicator) link.communicator = std::make_unique<MpiCommunicator>(group.comm(), machine);
  if (group.count() > 1) link.world = std::move(world);
  return link;
}

}  // namespace h3
