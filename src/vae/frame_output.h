// Where a rank's finished frames go: converted to 8 bits (spec/vae.md 11), and handed to the caller on the writer, or
// kept on the host until `send` delivers them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compute/machine.h"
#include "compute/operators.h"
#include "parallel/communicator.h"
#include "vae/frame_handover.h"

namespace h3 {

class FrameOutput {
 public:
  using Sink = FrameHandover::Sink;

  // `own`: the clip frames that this rank makes. At most `batch` frames are converted at once.
  FrameOutput(Machine& machine, bool writer, Range own, std::int64_t batch, std::int64_t height, std::int64_t width,
              bool truncate, Sink sink);
  static std::size_t device_bytes(std::int64_t batch, std::int64_t height, std::int64_t width);
  // In host memory; `own` frames on a rank that is not the writer.
  static std::size_t host_bytes(bool writer, std::int64_t own, std::int64_t batch, std::int64_t height,
                                std::int64_t width);

  // Frames [3, n, height, width] f32, n <= batch, from clip frame `first` on; the writer's come in order. The memory
  // may be overwritten by later work of the queue.
  void take(Queue& q, std::int64_t first, const Tensor& frames);
  // Delivers the kept frames to the writer, and receives the frames that rank `from` made and hands them on.
  void send(Queue& q, Communicator& ranks, int writer);
  void receive(Queue& q, Communicator& ranks, Range frames, int from);
  // Waits until all frames are handed over.
  void finish() { handover_.finish(); }
  // Values of frames taken here that were not a number.
  std::int64_t nan_values(Queue& q);
  // Frames handed to the sink, and what its SceneError said, or "". The sink gets no frames after one, but the ranks go
  // on in step. After `finish`.
  std::int64_t written() const { return handover_.written(); }
  const std::string& failure() const { return handover_.failure(); }

 private:
  Tensor on_device(std::int64_t frames) const;
  Tensor kept(Range frames);

  Machine& machine_;
  bool writer_;
  Range own_;
  std::int64_t batch_, height_, width_;
  bool truncate_;
  Buffer device_, nans_;
  FrameHandover handover_;         // the writer's
  std::unique_ptr<Queue> copies_;  // the others': to the kept frames
  Buffer kept_;
};

}  // namespace h3
