#include "vae/frame_output.h"

#include <algorithm>
#include <utility>

#include "vae/pixel_range.h"

namespace h3 {

namespace {

constexpr int kFramesTag = 3;

}  // namespace

std::size_t FrameOutput::device_bytes(std::int64_t batch, std::int64_t height, std::int64_t width) {
  return static_cast<std::size_t>(batch * height * width * 3) + sizeof(std::int32_t);
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
      sink_(std::move(sink)) {
  const std::int64_t frame = height * width * 3;
  const std::int64_t on_host = writer ? batch : own.size();
  device_ = Buffer(machine, static_cast<std::size_t>(batch * frame), machine.place());
  nans_ = Buffer(machine, sizeof(std::int32_t), machine.place());
  if (on_host > 0) host_ = Buffer(machine, static_cast<std::size_t>(on_host * frame), Place::host);
  auto queue = machine.make_queue();
  std::int32_t zero = 0;
  machine.copy(*queue, Tensor(&zero, {1}, DType::i32), nans_.tensor({1}, DType::i32));
  queue->wait();
}

Tensor FrameOutput::on_device(std::int64_t frames) const {
  CHECK_LE(frames, batch_);
  return device_.tensor({frames, height_, width_, 3}, DType::u8);
}

Tensor FrameOutput::on_host(Range frames) const {
  const std::int64_t first = writer_ ? frames.begin : own_.begin;
  const std::int64_t count = writer_ ? batch_ : own_.size();
  return host_.tensor({count, height_, width_, 3}, DType::u8).rows(frames.begin - first, frames.end - first);
}

void FrameOutput::hand_on(Range frames) {
  CHECK_EQ(frames.begin, written_);
  written_ = frames.end;
  if (!sink_ || !failure_.empty()) return;
  try {
    sink_(frames.begin, on_host(frames));
  } catch (const SceneError& error) {
    failure_ = error.what();
  }
}

void FrameOutput::take(Queue& q, std::int64_t first, const Tensor& frames) {
  const Range range{first, first + frames.size(1)};
  const Tensor pixels = on_device(range.size());
  machine_.operators().frames_to_u8(q, frames, kPixelMean, kPixelStd, truncate_, pixels, nans_.tensor({1}, DType::i32));
  machine_.copy(q, pixels, on_host(range));
  if (!writer_) return;
  q.wait();
  hand_on(range);
}

void FrameOutput::send(Queue& q, Communicator& ranks, int writer) {
  for (std::int64_t at = own_.begin; at < own_.end; at += batch_) {
    const Range range{at, std::min(own_.end, at + batch_)};
    const Tensor pixels = on_device(range.size());
    machine_.copy(q, on_host(range), pixels);
    ranks.send(q, pixels, writer, kFramesTag);
  }
}

void FrameOutput::receive(Queue& q, Communicator& ranks, Range frames, int from) {
  for (std::int64_t at = frames.begin; at < frames.end; at += batch_) {
    const Range range{at, std::min(frames.end, at + batch_)};
    const Tensor pixels = on_device(range.size());
    ranks.receive(q, pixels, from, kFramesTag);
    machine_.copy(q, pixels, on_host(range));
    q.wait();
    hand_on(range);
  }
}

std::int64_t FrameOutput::nan_values(Queue& q) {
  std::int32_t count = 0;
  machine_.copy(q, nans_.tensor({1}, DType::i32), Tensor(&count, {1}, DType::i32));
  q.wait();
  return count;
}

}  // namespace h3
