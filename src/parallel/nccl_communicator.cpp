#include "parallel/nccl_communicator.h"

#include <nccl.h>

#include <cstring>

#include "compute/cuda/cuda_queue.h"
#include "parallel/transfer_clock.h"

namespace h3 {

namespace {

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw RunError(fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)));
}
#define H3_NCCL(call) check_nccl((call), #call)

// The v-forms are groups of sends and receives; bytes, so that nothing can be reduced or converted.
class Group {
 public:
  Group(ncclComm_t comm, cudaStream_t stream) : comm_(comm), stream_(stream) { H3_NCCL(ncclGroupStart()); }
  void send(const Tensor& x, int to) {
    H3_CHECK(x.contiguous());
    if (x.elements() > 0) H3_NCCL(ncclSend(x.data, x.bytes(), ncclInt8, to, comm_, stream_));
  }
  std::uint64_t receive(const Tensor& x, int from) {
    H3_CHECK(x.contiguous());
    if (x.elements() > 0) H3_NCCL(ncclRecv(x.data, x.bytes(), ncclInt8, from, comm_, stream_));
    return x.bytes();
  }
  void run() { H3_NCCL(ncclGroupEnd()); }

 private:
  ncclComm_t comm_;
  cudaStream_t stream_;
};

bool on_host(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (t.place == Place::device) return false;
  return true;
}

}  // namespace

struct NcclCommunicator::Impl {
  ncclComm_t comm = nullptr;
  TransferClock clock;

  template <typename F>
  void timed(Queue& q, F&& transfers) {
    const cudaStream_t stream = cuda_queue(q).stream();
    clock.measure(stream, [&] {
      Group group(comm, stream);
      transfers(group);
      group.run();
    });
    check();
  }

  void check() const {
    ncclResult_t async = ncclSuccess;
    H3_NCCL(ncclCommGetAsyncError(comm, &async));
    H3_NCCL(async);
  }
};

NcclCommunicator::NcclCommunicator(MPI_Comm comm, Machine& machine)
    : mpi_(comm, machine), machine_(machine), impl_(std::make_unique<Impl>()) {
  ncclUniqueId id;
  if (mpi_.rank() == 0) H3_NCCL(ncclGetUniqueId(&id));
  const std::string text =
      mpi_.broadcast_text(std::string_view(reinterpret_cast<const char*>(&id), mpi_.rank() == 0 ? sizeof(id) : 0), 0);
  std::memcpy(&id, text.data(), sizeof(id));
  H3_NCCL(ncclCommInitRank(&impl_->comm, mpi_.size(), id, mpi_.rank()));
}

NcclCommunicator::~NcclCommunicator() {
  if (impl_->comm) ncclCommDestroy(impl_->comm);
}

void NcclCommunicator::all_gather(Queue& q, std::span<const Tensor> blocks) {
  if (on_host(blocks)) return mpi_.all_gather(q, blocks);
  impl_->timed(q, [&](Group& group) {
    for (int i = 1; i < size(); ++i) {
      const int to = (rank() + i) % size(), from = (rank() + size() - i) % size();
      group.send(blocks[static_cast<std::size_t>(rank())], to);
      bytes_received_ += group.receive(blocks[static_cast<std::size_t>(from)], from);
    }
  });
}

void NcclCommunicator::all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) {
  if (on_host(sends) && on_host(receives)) return mpi_.all_to_all(q, sends, receives);
  const auto own = static_cast<std::size_t>(rank());
  if (sends[own].elements() > 0 && sends[own].data != receives[own].data) machine_.copy(q, sends[own], receives[own]);
  impl_->timed(q, [&](Group& group) {
    for (int i = 1; i < size(); ++i) {
      const int to = (rank() + i) % size(), from = (rank() + size() - i) % size();
      group.send(sends[static_cast<std::size_t>(to)], to);
      bytes_received_ += group.receive(receives[static_cast<std::size_t>(from)], from);
    }
  });
}

void NcclCommunicator::send(Queue& q, const Tensor& x, int to, int tag) {
  if (x.place == Place::host) return mpi_.send(q, x, to, tag);
  impl_->timed(q, [&](Group& group) { group.send(x, to); });
  q.wait();
}

void NcclCommunicator::receive(Queue& q, const Tensor& x, int from, int tag) {
  if (x.place == Place::host) return mpi_.receive(q, x, from, tag);
  impl_->timed(q, [&](Group& group) { bytes_received_ += group.receive(x, from); });
  q.wait();
}

void NcclCommunicator::broadcast(Queue& q, const Tensor& x, int root) {
  if (x.place == Place::host) return mpi_.broadcast(q, x, root);
  impl_->timed(q, [&](Group& group) {
    for (int r = 0; r < size(); ++r) {
      if (r == root) continue;
      if (rank() == root) group.send(x, r);
      if (rank() == r) bytes_received_ += group.receive(x, root);
    }
  });
}

double NcclCommunicator::transfer_seconds() {
  const double seconds = impl_->clock.seconds();
  impl_->check();
  return seconds;
}

std::string NcclCommunicator::version() {
  int version = 0;
  H3_NCCL(ncclGetVersion(&version));
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace h3
