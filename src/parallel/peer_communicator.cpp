#include "parallel/peer_communicator.h"

#include <algorithm>
#include <exception>

#include "compute/cuda/cuda_queue.h"
#include "parallel/mpi_call.h"
#include "parallel/peer_memory.h"
#include "parallel/peer_signals.h"
#include "parallel/transfer_clock.h"

namespace h3 {

struct PeerCommunicator::Links {
  Links(MpiCommunicator& node, Machine& machine) : signals(node), copies(machine.make_queue()) {}
  PeerSignals signals;
  PeerMemory memory;
  std::unique_ptr<Queue> copies;
  TransferClock clock;
  std::uint32_t started = 0;  // transfers, the same on all ranks; by their number streams wait for each other
  std::uint64_t bytes_received = 0;
};

class PeerCommunicator::PeerTransfer final : public Transfer {
 public:
  PeerTransfer(MpiCommunicator& node, Links& links, std::span<const Tensor> sends, std::span<const Tensor> receives);
  ~PeerTransfer() override;
  PeerTransfer(const PeerTransfer&) = delete;
  PeerTransfer& operator=(const PeerTransfer&) = delete;
  void start(Queue& q) override;
  void finish(Queue& q) override;

 private:
  struct Copy {
    int from;
    PeerMemory::Opened source;
    Tensor to;
  };

  MpiCommunicator& node_;
  Links& links_;
  std::vector<int> readers_;  // ranks that copy from this one
  std::vector<Copy> copies_;
  cudaEvent_t arrived_ = nullptr;
  std::uint32_t number_ = 0;
};

PeerCommunicator::PeerTransfer::PeerTransfer(MpiCommunicator& node, Links& links, std::span<const Tensor> sends,
                                             std::span<const Tensor> receives)
    : node_(node), links_(links) {
  const int ranks = node.size(), own = node.rank();
  CHECK_EQ(sends.size(), static_cast<std::size_t>(ranks));
  CHECK_EQ(receives.size(), sends.size());
  std::vector<std::string> sources;  // by sender
  for (int to = 0; to < ranks; ++to) {
    const Tensor& x = sends[static_cast<std::size_t>(to)];
    const std::vector<std::string> named = node.gather_text(to == own ? "" : PeerMemory::name(x));
    if (to == own) sources = named;
    if (to != own && x.elements() > 0) readers_.push_back(to);
  }
  for (int i = 1; i < ranks; ++i) {
    const int from = (own + ranks - i) % ranks;
    const Tensor& to = receives[static_cast<std::size_t>(from)];
    const std::string& source = sources[static_cast<std::size_t>(from)];
    CHECK_EQ(source.empty(), to.elements() == 0);
    if (source.empty()) continue;
    copies_.push_back({from, links.memory.open(source), to});
    CHECK_EQ(copies_.back().source.rows, to.size(0));
    CHECK_EQ(copies_.back().source.row_bytes, static_cast<std::size_t>(to.size(1)) * size_of(to.dtype));
  }
  H3_CUDA(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming));
}

// Memory may be freed once no peer reads it or has it mapped.
PeerCommunicator::PeerTransfer::~PeerTransfer() {
  if (std::uncaught_exceptions() > 0) {
    links_.signals.release(links_.started);
  } else {
    cudaEventSynchronize(arrived_);
    copies_.clear();
    try {
      node_.barrier();
    } catch (const RunError&) {  // the run ends of it elsewhere
    }
  }
  cudaEventDestroy(arrived_);
}

void PeerCommunicator::PeerTransfer::start(Queue& q) {
  number_ = ++links_.started;
  for (const int to : readers_) links_.signals.write(cuda_queue(q).stream(), to, PeerSignal::ready, number_);
  links_.copies->wait_for(q);
  const cudaStream_t stream = cuda_queue(*links_.copies).stream();
  for (const Copy& copy : copies_) {
    links_.signals.wait(stream, copy.from, PeerSignal::ready, number_);
    const std::size_t step = static_cast<std::size_t>(copy.to.stride(0)) * size_of(copy.to.dtype);
    H3_CUDA(cudaMemcpy2DAsync(copy.to.data, std::max(step, copy.source.row_bytes), copy.source.data,
                              std::max(copy.source.row_step, copy.source.row_bytes), copy.source.row_bytes,
                              static_cast<std::size_t>(copy.source.rows), cudaMemcpyDefault, stream));
    links_.signals.write(stream, copy.from, PeerSignal::taken, number_);
    links_.bytes_received += copy.to.bytes();
  }
  H3_CUDA(cudaEventRecord(arrived_, stream));
}

void PeerCommunicator::PeerTransfer::finish(Queue& q) {
  const cudaStream_t stream = cuda_queue(q).stream();
  links_.clock.measure(stream, [&] {
    H3_CUDA(cudaStreamWaitEvent(stream, arrived_, 0));
    for (const int to : readers_) links_.signals.wait(stream, to, PeerSignal::taken, number_);
  });
}

PeerCommunicator::PeerCommunicator(MPI_Comm comm, Machine& machine)
    : node_(comm, machine), links_(std::make_unique<Links>(node_, machine)) {}

PeerCommunicator::~PeerCommunicator() = default;

std::unique_ptr<Transfer> PeerCommunicator::prepare(Operators&, std::span<const Tensor> sends,
                                                    std::span<const Tensor> receives, const Tensor&) {
  return std::make_unique<PeerTransfer>(node_, *links_, sends, receives);
}

std::uint64_t PeerCommunicator::bytes_received() const {
  return links_->bytes_received + node_.bytes_received() + (rest_ ? rest_->bytes_received() : 0);
}

double PeerCommunicator::transfer_seconds() {
  return links_->clock.seconds() + rest_->transfer_seconds();
}

template <typename F>
std::string PeerCommunicator::first_problem(F&& attempt) {
  std::string problem;
  try {
    attempt();
  } catch (const RunError& e) {
    problem = fmt::format("rank {}: {}", rank(), e.what());
  }
  for (const std::string& p : node_.gather_text(problem))
    if (!p.empty()) return p;
  return "";
}

// Every rank sends every other a few bytes of its own. What can fail on one rank alone is tried apart first, so that
// all ranks take the same way.
std::string PeerCommunicator::try_out(Machine& machine) {
  const auto ranks = static_cast<std::int64_t>(size());
  constexpr std::int64_t kBytes = 256;
  Buffer there(machine, static_cast<std::size_t>((ranks + 1) * kBytes), Place::device);
  const Tensor all = there.tensor({ranks + 1, kBytes}, DType::u8), mine = all.rows(ranks, ranks + 1);
  std::string named;
  std::string problem = first_problem([&] {
    links_->signals.attach();
    named = PeerMemory::name(mine);
  });
  if (!problem.empty()) return problem;
  const std::vector<std::string> names = node_.gather_text(named);
  std::vector<PeerMemory::Opened> opened;
  problem = first_problem([&] {
    for (std::size_t r = 0; r < names.size(); ++r)
      if (static_cast<int>(r) != rank()) opened.push_back(links_->memory.open(names[r]));
  });
  if (!problem.empty()) return problem;
  bool all_right = true;
  {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kBytes), static_cast<std::uint8_t>(rank() + 1));
    const auto q = machine.make_queue();
    machine.copy(*q, Tensor(bytes.data(), mine.shape, DType::u8), mine);
    std::vector<Tensor> sends(names.size(), mine), receives;
    for (std::int64_t r = 0; r < ranks; ++r) receives.push_back(all.rows(r, r + 1));
    PeerTransfer transfer(node_, *links_, sends, receives);
    transfer.start(*q);
    transfer.finish(*q);
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (r == rank()) continue;
      machine.copy(*q, all.rows(r, r + 1), Tensor(bytes.data(), mine.shape, DType::u8));
      q->wait();
      for (const std::uint8_t b : bytes) all_right = all_right && b == (r + 1) % 256;
    }
  }
  return first_problem([&] { H3_CHECK(all_right, "copies between the GPUs bring wrong values"); });
}

static bool on_one_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int here = 0, all = 0;
  H3_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  H3_MPI(MPI_Comm_size(node, &here));
  H3_MPI(MPI_Comm_size(comm, &all));
  H3_MPI(MPI_Comm_free(&node));
  return here == all;
}

std::unique_ptr<PeerCommunicator> PeerCommunicator::connect(MPI_Comm comm, Machine& machine,
                                                            std::unique_ptr<Communicator>& rest,
                                                            std::string& obstacle) {
  obstacle = on_one_node(comm) ? "" : "the ranks are on several nodes";
  if (!obstacle.empty()) return nullptr;
  try {
    std::unique_ptr<PeerCommunicator> peer(new PeerCommunicator(comm, machine));
    obstacle = peer->try_out(machine);
    if (!obstacle.empty()) return nullptr;
    peer->rest_ = std::move(rest);
    return peer;
  } catch (const RunError& e) {  // no shared memory, found on all ranks alike
    obstacle = e.what();
    return nullptr;
  }
}

}  // namespace h3
