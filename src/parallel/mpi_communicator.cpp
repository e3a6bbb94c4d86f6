#include "parallel/mpi_communicator.h"

#include <algorithm>

#include "parallel/mpi_call.h"

namespace h3 {

namespace {

// MPI counts are ints, so long messages travel in pieces of this many bytes.
constexpr std::size_t kPiece = std::size_t{1} << 30;
constexpr int kCollectiveTag = 1;
constexpr int kFirstUserTag = 16;

template <typename F>
void for_pieces(const Tensor& t, F&& f) {
  for (std::size_t at = 0; at < t.bytes(); at += kPiece)
    f(static_cast<char*>(t.data) + at, static_cast<int>(std::min(kPiece, t.bytes() - at)));
}

}  // namespace

// A set of messages in flight. Device tensors are staged: sends are downloaded before they leave, receives uploaded
// when `finish` has seen them arrive.
class MpiCommunicator::Messages {
 public:
  Messages(MpiCommunicator& owner, Queue& q) : owner_(owner), q_(q) {}

  void send(const Tensor& x, int to, int tag) { outgoing_.push_back({x, on_host(x), to, tag}); }
  void receive(const Tensor& x, int from, int tag) { incoming_.push_back({x, on_host(x), from, tag}); }

  void finish() {
    for (Message& m : incoming_) {
      owner_.bytes_received_ += m.host.bytes();
      for_pieces(m.host, [&](char* data, int bytes) {
        H3_MPI(MPI_Irecv(data, bytes, MPI_BYTE, m.peer, m.tag, owner_.comm_, next_request()));
      });
    }
    for (Message& m : outgoing_)
      if (m.host.data != m.tensor.data) owner_.machine_.copy(q_, m.tensor, m.host);
    if (!outgoing_.empty()) q_.wait();
    for (Message& m : outgoing_)
      for_pieces(m.host, [&](char* data, int bytes) {
        H3_MPI(MPI_Isend(data, bytes, MPI_BYTE, m.peer, m.tag, owner_.comm_, next_request()));
      });
    H3_MPI(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    bool uploaded = false;
    for (Message& m : incoming_) {
      if (m.host.data == m.tensor.data) continue;
      owner_.machine_.copy(q_, m.host, m.tensor);
      uploaded = true;
    }
    if (uploaded) q_.wait();
  }

 private:
  struct Message {
    Tensor tensor;
    Tensor host;
    int peer;
    int tag;
  };

  Tensor on_host(const Tensor& x) {
    H3_CHECK(x.contiguous(), "messages are contiguous");
    if (x.place == Place::host) return x;
    staging_.emplace_back(owner_.machine_, x.bytes(), Place::host);
    return staging_.back().tensor(x.shape, x.dtype);
  }
  MPI_Request* next_request() {
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }

  MpiCommunicator& owner_;
  Queue& q_;
  std::vector<Message> outgoing_, incoming_;
  std::vector<Buffer> staging_;
  std::vector<MPI_Request> requests_;
};

MpiCommunicator::MpiCommunicator(MPI_Comm comm, Machine& machine) : machine_(machine) {
  H3_MPI(MPI_Comm_dup(comm, &comm_));
  H3_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  H3_MPI(MPI_Comm_rank(comm_, &rank_));
  H3_MPI(MPI_Comm_size(comm_, &size_));
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void MpiCommunicator::all_gather(Queue& q, std::span<const Tensor> blocks) {
  CHECK_EQ(blocks.size(), static_cast<std::size_t>(size_));
  Messages messages(*this, q);
  const Tensor& own = blocks[static_cast<std::size_t>(rank_)];
  for (int i = 1; i < size_; ++i) {
    const int to = (rank_ + i) % size_;
    const int from = (rank_ + size_ - i) % size_;
    if (own.elements() > 0) messages.send(own, to, kCollectiveTag);
    const Tensor& block = blocks[static_cast<std::size_t>(from)];
    if (block.elements() > 0) messages.receive(block, from, kCollectiveTag);
  }
  messages.finish();
}

void MpiCommunicator::all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) {
  CHECK_EQ(sends.size(), static_cast<std::size_t>(size_));
  CHECK_EQ(receives.size(), static_cast<std::size_t>(size_));
  const auto own = static_cast<std::size_t>(rank_);
  if (sends[own].elements() > 0 && sends[own].data != receives[own].data) machine_.copy(q, sends[own], receives[own]);
  Messages messages(*this, q);
  for (int i = 1; i < size_; ++i) {
    const auto to = static_cast<std::size_t>((rank_ + i) % size_);
    const auto from = static_cast<std::size_t>((rank_ + size_ - i) % size_);
    if (sends[to].elements() > 0) messages.send(sends[to], static_cast<int>(to), kCollectiveTag);
    if (receives[from].elements() > 0) messages.receive(receives[from], static_cast<int>(from), kCollectiveTag);
  }
  messages.finish();
}

void MpiCommunicator::send(Queue& q, const Tensor& x, int to, int tag) {
  Messages messages(*this, q);
  messages.send(x, to, kFirstUserTag + tag);
  messages.finish();
}

void MpiCommunicator::receive(Queue& q, const Tensor& x, int from, int tag) {
  Messages messages(*this, q);
  messages.receive(x, from, kFirstUserTag + tag);
  messages.finish();
}

void MpiCommunicator::broadcast(Queue& q, const Tensor& x, int root) {
  Messages messages(*this, q);
  for (int r = 0; r < size_; ++r) {
    if (r == root || x.elements() == 0) continue;
    if (rank_ == root) messages.send(x, r, kCollectiveTag);
    if (rank_ == r) messages.receive(x, root, kCollectiveTag);
  }
  messages.finish();
}

void MpiCommunicator::barrier() {
  H3_MPI(MPI_Barrier(comm_));
}

std::int64_t MpiCommunicator::agree_max(std::int64_t value) {
  std::int64_t largest = value;
  H3_MPI(MPI_Allreduce(&value, &largest, 1, MPI_INT64_T, MPI_MAX, comm_));
  return largest;
}

std::vector<std::string> MpiCommunicator::gather_text(std::string_view text) {
  std::vector<std::string> all;
  for (int r = 0; r < size_; ++r) all.push_back(broadcast_text(text, r));
  return all;
}

std::string MpiCommunicator::broadcast_text(std::string_view text, int root) {
  auto length = static_cast<std::int64_t>(text.size());
  H3_MPI(MPI_Bcast(&length, 1, MPI_INT64_T, root, comm_));
  std::string all(rank_ == root ? text : std::string_view());
  all.resize(static_cast<std::size_t>(length));
  for_pieces(Tensor(all.data(), {length}, DType::u8),
             [&](char* data, int bytes) { H3_MPI(MPI_Bcast(data, bytes, MPI_BYTE, root, comm_)); });
  return all;
}

std::vector<double> MpiCommunicator::gather_value(double value) {
  std::vector<double> all(static_cast<std::size_t>(size_));
  H3_MPI(MPI_Allgather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm_));
  return all;
}

}  // namespace h3
