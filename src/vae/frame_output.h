// Where a rank's finished frames go: converted to 8 bits (spec/vae.md 11), and handed to the caller at once on the
// writer, or kept on the host until `send` delivers them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "compute/machine.h"
#include "compute/operators.h"
#include "parallel/communicator.h"
#include "parallel/shards.h"

namespace h3 {

class FrameOutput {
 public:
  using Sink = std::function<void(std::int64_t first_frame, const Tensor& frames)>;

  // `own`: the clip frames that this rank makes. At most `batch` frames are converted at once.
  FrameOutput(Machine& machine, bool writer, Range own, std::int64_t batch, std::int64_t height, std::int64_t width,
              bool truncate, Sink sink);
  static std::size_t device_bytes(std::int64_t batch, std::int64_t height, std::int64_t width);

  // Frames [3, n, height, width] f32, n <= batch, from clip frame `first` on; the writer's come in order. The memory
  // may be overwritten by later work of the queue.
  void take(Queue& q, std::int64_t first, const Tensor& frames);
  // Delivers the kept frames to the writer, and receives the frames that rank `from` made and hands them on.
  void send(Queue& q, Communicator& ranks, int writer);
  void receive(Queue& q, Communicator& ranks, Range frames, int from);
  // Values of frames taken here that were not a number.
  std::int64_t nan_values(Queue& q);
  // Frames handed to the sink so far.
  std::int64_t written() const { return written_; }
  // What the sink's SceneError said, or "". The sink gets no frames after one, but the ranks go on in step.
  const std::string& failure() const { return failure_; }

 private:
  Tensor on_device(std::int64_t frames) const;
  Tensor on_host(Range frames) const;
  void hand_on(Range frames);

  Machine& machine_;
  bool writer_;
  Range own_;
  std::int64_t batch_, height_, width_;
  bool truncate_;
  Sink sink_;
  Buffer device_, nans_, host_;
  std::int64_t written_ = 0;
  std::string failure_;
};

}  // namespace h3
