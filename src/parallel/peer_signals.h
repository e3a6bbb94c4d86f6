// Counters through which the GPUs of a node's processes tell each other how far they are, without their hosts: a stream
// writes one, another process's stream waits until it has reached a value. They lie in host memory that all ranks map,
// so that a host can release its own streams when it has to end while a peer is silent.
#pragma once

#include <cuda_runtime_api.h>
#include <mpi.h>

#include <cstdint>

#include "parallel/mpi_communicator.h"

namespace h3 {

enum class PeerSignal : std::uint8_t { ready, taken };

class PeerSignals {
 public:
  // Collective over the ranks of one node. Throws RunError on every rank where one has no shared memory.
  explicit PeerSignals(MpiCommunicator& node);
  ~PeerSignals();
  PeerSignals(const PeerSignals&) = delete;
  PeerSignals& operator=(const PeerSignals&) = delete;
  // Makes the counters known to this process's GPU, which is current. Throws RunError.
  void attach();

  // Sets the counter that rank `to` reads of this rank, when the stream gets there and all its work before is visible.
  void write(cudaStream_t stream, int to, PeerSignal signal, std::uint32_t value);
  // Holds the stream until the counter that rank `from` writes for this rank has reached `value`, which may wrap.
  void wait(cudaStream_t stream, int from, PeerSignal signal, std::uint32_t value);
  // Lets every wait of this rank for values up to about `value` pass, for the way out after an error.
  void release(std::uint32_t value);

 private:
  std::size_t index(int reader, int writer, PeerSignal signal) const;
  std::uintptr_t address(int reader, int writer, PeerSignal signal) const;

  int rank_, size_;
  std::size_t bytes_ = 0;
  std::uint32_t* counters_ = nullptr;
  void* on_gpu_ = nullptr;
};

}  // namespace h3
