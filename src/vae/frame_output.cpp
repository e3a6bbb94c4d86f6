#include "vae/frame_output.h"

#include <algorithm>
#include <utility>

#include "vae/pixel_range.h"

namespace h3 {

namespace {

constexpr int kFramesTag = 3;

std::size_t frames_bytes(std::int64_t frames, std::int64_t height, std::int64_t width) {
  return static_cast<std::size_t>(frames * height * width * 3);
}

}  // namespace

std::size_t FrameOutput::device_bytes(std::int64_t batch, std::int64_t height, std::int64_t width) {
  return frames_bytes(batch, height, width) + sizeof(std::int32_t);
}

std::size_t FrameOutput::host_bytes(bool writer, std::int64_t own, std::int64_t batch, std::int64_t height,
                                    std::int64_t width) {
  return frames_bytes(writer ? static_cast<std::int64_t>(FrameHandover::kBatches) * batch : own, height, width);
}

FrameOutput::FrameOutput(Machine& machine, bool writer, Range own, std::int64_t batch, std::int64_t height,
                         std::int64_t width, bool truncate, Sink sink)
    : machine_(machine),
      writer_(writer),
      own_(own),
      batch_(batch),
      height_(height),
      width_(width),
      truncate_(truncate),
      device_(machine, frames_bytes(batch, height, width), machine.place()),
      nans_(machine, sizeof(std::int32_t), machine.place()),
      handover_(machine, std::move(sink)),
      copies_(machine.make_queue()) {
  std::int32_t zero = 0;
  machine.copy(*copies_, Tensor(&zero, {1}, DType::i32), nans_.tensor({1}, DType::i32));
  copies_->wait();
}

Tensor FrameOutput::on_device(std::int64_t frames) const {
  CHECK_LE(frames, batch_);
  return device_.tensor({frames, height_, width_, 3}, DType::u8);
}

// The memory is taken at the first use, when the device has work: page-locking it takes a while.
Tensor FrameOutput::kept(Range frames) {
  if (!kept_.data()) kept_ = Buffer(machine_, frames_bytes(own_.size(), height_, width_), Place::host);
  return kept_.tensor({own_.size(), height_, width_, 3}, DType::u8)
      .rows(frames.begin - own_.begin, frames.end - own_.begin);
}

void FrameOutput::take(Queue& q, std::int64_t first, const Tensor& frames) {
  const Range range{first, first + frames.size(1)};
  const Tensor pixels = on_device(range.size());
  if (writer_)
    handover_.release(q);
  else
    q.wait_for(*copies_);
  machine_.operators().frames_to_u8(q, frames, kPixelMean, kPixelStd, truncate_, pixels, nans_.tensor({1}, DType::i32));
  if (writer_) return handover_.push(q, first, pixels);
  copies_->wait_for(q);
  machine_.copy(*copies_, pixels, kept(range));
}

void FrameOutput::send(Queue& q, Communicator& ranks, int writer) {
  q.wait_for(*copies_);
  for (std::int64_t at = own_.begin; at < own_.end; at += batch_) {
    const Range range{at, std::min(own_.end, at + batch_)};
    const Tensor pixels = on_device(range.size());
    machine_.copy(q, kept(range), pixels);
    ranks.send(q, pixels, writer, kFramesTag);
  }
}

void FrameOutput::receive(Queue& q, Communicator& ranks, Range frames, int from) {
  for (std::int64_t at = frames.begin; at < frames.end; at += batch_) {
    const Range range{at, std::min(frames.end, at + batch_)};
    const Tensor pixels = on_device(range.size());
    handover_.release(q);
    ranks.receive(q, pixels, from, kFramesTag);
    handover_.push(q, range.begin, pixels);
  }
}

std::int64_t FrameOutput::nan_values(Queue& q) {
  std::int32_t count = 0;
  machine_.copy(q, nans_.tensor({1}, DType::i32), Tensor(&count, {1}, DType::i32));
  q.wait();
  return count;
}

}  // namespace h3
