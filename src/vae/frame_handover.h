// Takes finished frames off the device and hands them to the caller on a thread of its own, in order, so that neither
// copying nor hashing, encoding and writing them keeps the device waiting. Bounded: whoever brings frames faster than
// they are taken waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compute/machine.h"
#include "parallel/shards.h"

namespace h3 {

class FrameHandover {
 public:
  using Sink = std::function<void(std::int64_t first_frame, const Tensor& frames)>;
  // Batches that may be on their way: one that the sink works on, one that is being copied, one spare.
  static constexpr std::size_t kBatches = 3;

  // `sink` is called on the other thread, one call at a time, and may be empty.
  FrameHandover(Machine& machine, Sink sink);
  // Frames not yet handed over are dropped.
  ~FrameHandover();
  FrameHandover(const FrameHandover&) = delete;
  FrameHandover& operator=(const FrameHandover&) = delete;

  // Frames [n, height, width, 3] u8 at Machine::place() as the work given to `q` so far leaves them; later work of `q`
  // may overwrite them once `release` was called. `first` is the frame behind the last push.
  void push(Queue& q, std::int64_t first, const Tensor& frames);
  // Makes later work of `q` wait until the frames pushed so far are copied.
  void release(Queue& q);
  // Waits until all is handed over. Throws what the sink threw, SceneError excepted.
  void finish();
  // Frames handed over by now, and what the sink's SceneError said, or "": after one it gets no more. After `finish`.
  std::int64_t written() const { return written_; }
  const std::string& failure() const { return failure_; }

 private:
  struct Batch {
    std::unique_ptr<Queue> copies;
    Buffer memory;
    std::int64_t first = 0;
    Tensor frames;
  };
  Batch& free_batch();
  void run();
  void hand_over(Batch& batch);

  Machine& machine_;
  Sink sink_;
  std::vector<std::unique_ptr<Batch>> batches_;
  Batch* last_ = nullptr;  // pushed
  std::int64_t pushed_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Batch*> free_, waiting_;
  std::size_t under_way_ = 0;  // waiting or at the sink
  bool stop_ = false;
  std::exception_ptr error_;
  std::int64_t written_ = 0;
  std::string failure_;
  std::thread thread_;
};

}  // namespace h3
