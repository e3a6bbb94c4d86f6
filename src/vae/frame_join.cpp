#include "vae/frame_join.h"

#include <utility>

namespace h3 {

FrameJoiner::FrameJoiner(Machine& machine, const ChunkPlan& plan, std::int64_t channels, std::int64_t height,
                         std::int64_t width, Emit emit)
    : machine_(machine),
      operators_(machine.operators()),
      plan_(plan),
      frame_({channels, height, width}),
      emit_(std::move(emit)) {
  tail_ = take_overlap();
}

Tensor FrameJoiner::take_overlap() {
  const Shape shape{frame_[0], plan_.tail.size(), frame_[1], frame_[2]};
  if (shape.elements() == 0) return Tensor(nullptr, shape, DType::f32, machine_.place());
  buffers_.emplace_back(machine_, static_cast<std::size_t>(shape.elements()) * size_of(DType::f32), machine_.place());
  return buffers_.back().tensor(shape, DType::f32);
}

const Tensor& FrameJoiner::earlier_tail() {
  if (!earlier_tail_) earlier_tail_ = take_overlap();
  return earlier_tail_;
}

// [channels, frames, height * width] of a view whose frames are contiguous.
static Tensor as_planes(const Tensor& x) {
  Tensor t(x.data, {x.size(0), x.size(1), x.size(2) * x.size(3)}, x.dtype, x.place);
  t.strides[0] = x.stride(0);
  t.strides[1] = x.stride(1);
  return t;
}

void FrameJoiner::fade(Queue& q, const Tensor& older, const Tensor& newer) {
  operators_.cross_fade(q, as_planes(older), 1, as_planes(newer));
}

void FrameJoiner::copy_frames(Queue& q, const Tensor& from, const Tensor& to) {
  const auto flat = [](const Tensor& x) {
    Tensor t(x.data, {x.size(0), x.size(1) * x.size(2) * x.size(3)}, x.dtype, x.place);
    t.strides[0] = x.stride(0);
    return t;
  };
  operators_.copy_rows(q, flat(from), flat(to));
}

void FrameJoiner::hand_out(Queue& q, std::int64_t first_frame, const Tensor& frames) {
  const std::int64_t count = frames.size(1);
  const std::int64_t kept = std::min(count, std::max<std::int64_t>(plan_.frames - first_frame, 0));
  made_ += count;
  dropped_ += count - kept;
  if (kept > 0) emit_(q, first_frame, frames.slice(1, 0, kept));
}

void FrameJoiner::add(Queue& q, std::int64_t c, const Tensor& chunk) {
  CHECK_EQ(chunk.size(1), plan_.decoded);
  H3_CHECK(last_ < 0 || c == last_ + 1, "chunks are joined in order");
  const Tensor head = chunk.slice(1, plan_.head.begin, plan_.head.end);
  const std::int64_t first = c * plan_.head.size(), overlap = plan_.tail.size();
  if (c == 0) {
    hand_out(q, first, head);
  } else if (last_ >= 0) {
    fade(q, tail_, head.slice(1, 0, overlap));
    hand_out(q, first, head);
  } else {
    waiting_ = take_overlap();
    waiting_chunk_ = c;
    copy_frames(q, head.slice(1, 0, overlap), waiting_);
    hand_out(q, first + overlap, head.slice(1, overlap, head.size(1)));
  }
  last_ = c;
  if (overlap == 0) return;
  copy_frames(q, chunk.slice(1, plan_.tail.begin, plan_.tail.end), tail_);
  if (c + 1 == plan_.chunks) hand_out(q, plan_.chunks * plan_.head.size(), tail_);
}

void FrameJoiner::join(Queue& q) {
  H3_CHECK(waiting_chunk_ > 0 && earlier_tail_, "no frames wait for a tail");
  fade(q, earlier_tail_, waiting_);
  hand_out(q, waiting_chunk_ * plan_.head.size(), waiting_);
  waiting_chunk_ = -1;
}

}  // namespace h3
