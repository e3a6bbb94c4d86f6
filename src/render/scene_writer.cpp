#include "render/scene_writer.h"

#include "base/file.h"
#include "base/helper_thread.h"
#include "base/log.h"
#include "render/failure_record.h"
#include "render/manifest.h"
#include "render/preview.h"
#include "weights/host_memory.h"

namespace h3 {

std::size_t frame_budget() {
  return static_cast<std::size_t>(host_memory().available / 4);
}

SceneWriter::SceneWriter(const Session& session, const SceneJob& job, std::size_t budget, const SceneWriter* before)
    : session_(session), name_(job.scene.name), budget_(budget), before_(before) {
  thread_ = start_helper_thread([this, job] { run(job); });
}

SceneWriter::~SceneWriter() {
  {
    const std::lock_guard lock(mutex_);
    dropped_ = !finished_ && !done_;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SceneWriter::add_frames(std::int64_t first, const Tensor& frames) {
  add(first, frames);
}

void SceneWriter::add_audio(const Tensor& pcm) {
  add(0, pcm);
}

void SceneWriter::add(std::int64_t first, const Tensor& values) {
  H3_CHECK(values.contiguous() && values.place == Place::host);
  const char* data = values.as<char>();
  Piece piece{first, values.shape, values.dtype, {data, data + values.bytes()}};
  std::unique_lock lock(mutex_);
  // One piece is always taken, however small the budget.
  changed_.wait(lock, [&] { return done_ || waiting_bytes_ == 0 || waiting_bytes_ + piece.bytes.size() <= budget_; });
  waiting_bytes_ += piece.bytes.size();
  pieces_.push_back(std::move(piece));
  changed_.notify_all();
}

void SceneWriter::complete(FinishedScene scene) {
  {
    const std::lock_guard lock(mutex_);
    finished_.emplace(std::move(scene));
  }
  changed_.notify_all();
}

bool SceneWriter::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void SceneWriter::settle() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
}

std::string SceneWriter::wait() {
  settle();
  if (broken_) std::rethrow_exception(broken_);
  return error_;
}

void SceneWriter::run(const SceneJob& job) {
  try {
    if (before_) before_->settle();
    outputs_.emplace(session_.options().output, job);
    write();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    broken_ = std::current_exception();
    done_ = true;
  }
  changed_.notify_all();
}

void SceneWriter::write() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return dropped_ || finished_ || !pieces_.empty(); });
    if (dropped_) {
      outputs_->discard();
      return;
    }
    if (pieces_.empty()) break;
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    lock.unlock();
    take(piece);
    lock.lock();
    waiting_bytes_ -= piece.bytes.size();
    changed_.notify_all();
  }
  lock.unlock();
  std::string error = finish(*finished_);
  // Only now may another group or run look at the scene.
  finished_->claim.reset();
  lock.lock();
  error_ = std::move(error);
  done_ = true;
}

void SceneWriter::take(const Piece& piece) {
  const Tensor values(const_cast<char*>(piece.bytes.data()), piece.shape, piece.dtype);
  if (piece.dtype == DType::u8)
    outputs_->add_frames(piece.first, values);
  else
    outputs_->add_audio(values);
}

// The manifest is written last: a scene with a manifest is complete.
std::string SceneWriter::finish(FinishedScene& scene) {
  StageTimer timer(scene.times, "write");
  std::string error;
  try {
    if (scene.claim && !scene.claim->still_mine()) throw SceneError(name_ + ": another run took this scene over");
    error = outputs_->finish();
    if (!error.empty()) throw SceneError(error);
    scene.dump.write();
    scene.manifest["hashes"].update({{"frames", outputs_->hashes().frames},
                                     {"audio", outputs_->hashes().audio},
                                     {"each_frame", outputs_->hashes().each_frame}});
    scene.manifest["files"] = outputs_->files();
    timer.stop();
    const nlohmann::json seconds = scene.times.json();
    scene.manifest["seconds"] = seconds;
    write_file_atomically(manifest_path(session_.options().output, name_), scene.manifest.dump(2) + "\n");
    scene.checkpoints->remove();
    remove_preview(session_.options().output, name_);
    spdlog::info("{}: done in {} (other {:.2f} s)", name_, duration_text(seconds["total"].get<double>()),
                 seconds["other"].get<double>());
    const auto text = [&](const char* key) { return scene.manifest["hashes"][key].get<std::string>(); };
    spdlog::info("hashes: video latents {}, audio latents {}, frames {}, audio {}", text("video_latents"),
                 text("audio_latents"), text("frames"), text("audio"));
    return "";
  } catch (const SceneError& e) {
    error = e.what();
  }
  outputs_->discard();
  scene.checkpoints->finish();
  record_failure(session_, name_, error);
  return error;
}

}  // namespace h3
