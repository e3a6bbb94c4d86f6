#include "vae/frame_handover.h"

#include <utility>

#include "base/error.h"
#include "base/helper_thread.h"

namespace h3 {

FrameHandover::FrameHandover(Machine& machine, Sink sink) : machine_(machine), sink_(std::move(sink)) {}

FrameHandover::~FrameHandover() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

FrameHandover::Batch& FrameHandover::free_batch() {
  std::unique_lock lock(mutex_);
  if (free_.empty() && batches_.size() < kBatches) {
    batches_.push_back(std::make_unique<Batch>());
    batches_.back()->copies = machine_.make_queue();
    return *batches_.back();
  }
  changed_.wait(lock, [&] { return !free_.empty(); });
  Batch* batch = free_.front();
  free_.pop_front();
  return *batch;
}

void FrameHandover::push(Queue& q, std::int64_t first, const Tensor& frames) {
  CHECK_EQ(first, pushed_);
  pushed_ += frames.size(0);
  Batch& batch = free_batch();
  if (batch.memory.bytes() < frames.bytes()) batch.memory = Buffer(machine_, frames.bytes(), Place::host);
  batch.first = first;
  batch.frames = batch.memory.tensor(frames.shape, frames.dtype);
  batch.copies->wait_for(q);
  machine_.copy(*batch.copies, frames, batch.frames);
  last_ = &batch;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&batch);
    ++under_way_;
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = start_helper_thread([this] { run(); });
}

void FrameHandover::release(Queue& q) {
  if (last_) q.wait_for(*last_->copies);
}

void FrameHandover::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return under_way_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void FrameHandover::hand_over(Batch& batch) {
  if (error_) return;
  try {
    batch.copies->wait();
    if (sink_ && failure_.empty()) sink_(batch.first, batch.frames);
    written_ += batch.frames.size(0);
  } catch (const SceneError& error) {
    failure_ = error.what();
    written_ += batch.frames.size(0);
  } catch (...) {
    error_ = std::current_exception();
  }
}

void FrameHandover::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    Batch* batch = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    hand_over(*batch);
    lock.lock();
    free_.push_back(batch);
    --under_way_;
    changed_.notify_all();
  }
}

}  // namespace h3
