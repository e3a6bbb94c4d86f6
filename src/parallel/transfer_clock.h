// Measures how long GPU queues spend on transfers: marks before and after, turned into seconds once they have passed.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <vector>

namespace h3 {

class TransferClock {
 public:
  TransferClock() = default;
  ~TransferClock();
  TransferClock(const TransferClock&) = delete;
  TransferClock& operator=(const TransferClock&) = delete;

  // Adds the time that the stream takes for what `give` puts into it.
  template <typename F>
  void measure(cudaStream_t stream, F&& give) {
    const cudaEvent_t begin = mark(stream);
    give();
    running_.push_back({begin, mark(stream)});
    collect(false);
  }
  // All that was measured; waits for it.
  double seconds();

 private:
  struct Span {
    cudaEvent_t begin, end;
  };
  cudaEvent_t mark(cudaStream_t stream);
  void collect(bool wait);

  std::deque<Span> running_;
  std::vector<cudaEvent_t> spare_;
  double seconds_ = 0;
};

}  // namespace h3
