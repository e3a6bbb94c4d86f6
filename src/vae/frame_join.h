// Joins stitched chunks into a clip's frames (spec/vae.md 10.3): a chunk's first frames are cross-faded with the tail
// of the chunk before, which is never blended itself, so each boundary depends on two chunks and can be joined in any
// order. Works for a contiguous range of chunks; the tail of the chunk before the range may come late, from another
// rank.
#pragma once

#include <cstdint>
#include <functional>

#include "compute/machine.h"
#include "compute/operators.h"
#include "vae/chunk_plan.h"

namespace h3 {

class FrameJoiner {
 public:
  // Takes finished frames in the normalised domain: the clip's frame number of the first, and [channels, n, height,
  // width] f32 with free plane strides. Frames past the clip's end are not handed out.
  using Emit = std::function<void(Queue&, std::int64_t first_frame, const Tensor& frames)>;

  FrameJoiner(Machine& machine, const ChunkPlan& plan, std::int64_t channels, std::int64_t height, std::int64_t width,
              Emit emit);

  // Chunk `c`, decoded and stitched, [channels, decoded frames, height, width] contiguous; overwritten. Chunks come in
  // order. Without its predecessor's tail the first chunk's first frames wait for `join`.
  void add(Queue& q, std::int64_t c, const Tensor& chunk);
  // The tail of the chunk added last, [channels, overlap, height, width]; valid until the next `add`.
  const Tensor& tail() const { return tail_; }
  // Where the tail of the chunk before the range is to be put, and the joining of the frames that waited for it.
  const Tensor& earlier_tail();
  void join(Queue& q);

  // Frames made so far, with those past the clip's end (10.3: the three invariants).
  std::int64_t made() const { return made_; }
  std::int64_t dropped() const { return dropped_; }

 private:
  void hand_out(Queue& q, std::int64_t first_frame, const Tensor& frames);
  void fade(Queue& q, const Tensor& older, const Tensor& newer);
  void copy_frames(Queue& q, const Tensor& from, const Tensor& to);
  Tensor take_overlap();

  Machine& machine_;
  Operators& operators_;
  ChunkPlan plan_;
  Shape frame_;  // [channels, height, width]
  Emit emit_;
  std::vector<Buffer> buffers_;
  Tensor tail_, earlier_tail_, waiting_;
  std::int64_t last_ = -1;           // chunk added last
  std::int64_t waiting_chunk_ = -1;  // chunk whose first frames wait
  std::int64_t made_ = 0, dropped_ = 0;
};

}  // namespace h3
