#include "checkpoint/writer.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/helper_thread.h"
#include "base/log.h"
#include "checkpoint/durable_file.h"
#include "checkpoint/paths.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Whether the checkpoint that stands at `path` is worth keeping: false for none and for a damaged one. Throws
// SceneError for one that is not of this scene, which must not be overwritten.
bool worth_keeping(const fs::path& path, FileLocking locking, const std::string& inputs_hash) {
  if (!is_there(path)) return false;
  try {
    if (parse_checkpoint(path, locking).inputs_hash == inputs_hash) return true;
    throw SceneError(fmt::format("{}: belongs to another scene or model, not overwritten", path.string()));
  } catch (const Hdf5Failure&) {
    return false;
  } catch (const UserError& e) {
    throw SceneError(fmt::format("{}; not overwritten", e.what()));
  }
}

}  // namespace

std::string write_inputs(const fs::path& folder, const std::string& name, const CheckpointInputs& inputs,
                         const CheckpointOptions& options) {
  write_durably({checkpoint_paths(folder, name).inputs, {}, options.may_commit, options.hooks}, compose_inputs(inputs));
  return inputs.content_hash();
}

CheckpointWriter::CheckpointWriter(fs::path folder, std::string name, CheckpointOptions options)
    : folder_(std::move(folder)), name_(std::move(name)), options_(std::move(options)), last_flush_(now_seconds()) {
  if (!options_.scratch.empty()) scratch_ = scratch_folder(options_.scratch, folder_);
  remove_leftovers(folder_, name_);
  if (!scratch_.empty()) remove_leftovers(scratch_, name_);
  thread_ = start_helper_thread([this] { work(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = flush_wanted_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (!error_.empty()) spdlog::error("{}", error_);
}

std::string CheckpointWriter::submit(Checkpoint snapshot) {
  std::string error;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_) ++totals_.replaced;
    waiting_ = std::move(snapshot);
    error = std::exchange(error_, "");
  }
  changed_.notify_all();
  return error;
}

std::string CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  flush_wanted_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !waiting_ && !busy_ && !flush_wanted_; });
  return std::exchange(error_, "");
}

CheckpointWriter::Totals CheckpointWriter::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return waiting_ || flush_wanted_ || leaving_; });
    if (!waiting_ && !flush_wanted_) return;
    std::optional<Checkpoint> snapshot = std::exchange(waiting_, std::nullopt);
    // A flush follows the snapshot that was submitted before it was asked for.
    const bool flushing = std::exchange(flush_wanted_, false);
    busy_ = true;
    lock.unlock();
    std::string error;
    try {
      if (snapshot) write(*snapshot);
      if (flushing) flush();
    } catch (const std::exception& e) {
      error = e.what();
    }
    snapshot.reset();
    lock.lock();
    busy_ = false;
    if (error_.empty()) error_ = error;
    changed_.notify_all();
  }
}

void CheckpointWriter::write(const Checkpoint& snapshot) {
  const double start = now_seconds();
  const std::string image = compose_checkpoint(snapshot);
  inputs_hash_ = snapshot.inputs_hash;
  if (!scratch_.empty()) {
    make_scratch_folder(scratch_);
    store(scratch_, image, snapshot.inputs_hash);
    unflushed_ = true;
  }
  if (scratch_.empty() || start - last_flush_ >= options_.flush_seconds) {
    store(folder_, image, snapshot.inputs_hash);
    last_flush_ = start;
    unflushed_ = false;
  }
  const std::lock_guard lock(mutex_);
  ++totals_.written;
  totals_.last_step = snapshot.step;
  totals_.bytes += image.size();
  totals_.last_seconds = now_seconds() - start;
  totals_.seconds += totals_.last_seconds;
}

void CheckpointWriter::flush() {
  if (!unflushed_) return;
  store(folder_, read_file(checkpoint_paths(scratch_, name_).newest), inputs_hash_);
  last_flush_ = now_seconds();
  unflushed_ = false;
}

void CheckpointWriter::store(const fs::path& folder, std::string_view image, const std::string& inputs_hash) {
  const CheckpointPaths paths = checkpoint_paths(folder, name_);
  bool& checked = folder == folder_ ? checked_ : checked_scratch_;
  // What this writer wrote itself is sound; what it found is looked at once.
  bool keep = true;
  if (!checked) keep = worth_keeping(paths.newest, options_.locking, inputs_hash);
  write_durably({paths.newest, keep ? paths.previous : fs::path(), options_.may_commit, options_.hooks}, image);
  checked = true;
}

}  // namespace h3
