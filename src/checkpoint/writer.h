// Writes checkpoints beside the render, on a thread of its own, from snapshots in host memory. At most one snapshot is
// being written and one waits; a newer one replaces the one that waits, so that a slow disk delays no step and memory
// stays bounded (two snapshots and twice the file, at most). At every instant at least one complete checkpoint has its
// name, once there was one.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/inputs.h"
#include "checkpoint/state.h"
#include "checkpoint/write_hooks.h"

namespace h3 {

struct CheckpointOptions {
  FileLocking locking = FileLocking::automatic;
  // A fast disk of the node, or "": each checkpoint goes there first, and to the output folder when `flush_seconds`
  // have passed since the last one did, and at `finish`.
  std::filesystem::path scratch;
  double flush_seconds = 60;
  // Asked before files get their names; false: the claim of the scene was lost, and nothing is changed.
  std::function<bool()> may_commit;
  WriteHooks hooks;
};

// Writes NAME.inputs.h5; returns its content hash, which the checkpoints carry. Throws SceneError.
std::string write_inputs(const std::filesystem::path& folder, const std::string& name, const CheckpointInputs& inputs,
                         const CheckpointOptions& options = {});

class CheckpointWriter {
 public:
  // The caller holds the scene's claim. Removes what killed writers left under temporary names. A damaged newest
  // checkpoint is overwritten by the first write rather than kept as the previous one; a foreign one is an error then.
  CheckpointWriter(std::filesystem::path folder, std::string name, CheckpointOptions options);
  // Waits for what was submitted; an error that nobody asked for is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Hands a snapshot over and returns at once. Returns the error of an earlier write ("disk full"), or "". Errors are
  // text, so that ranks can agree on them; after one, writing goes on with the next snapshot.
  [[nodiscard]] std::string submit(Checkpoint snapshot);

  // Waits until the last snapshot is safe in the output folder. Returns the first error not returned yet, or "".
  [[nodiscard]] std::string finish();

  struct Totals {
    std::int64_t written = 0, replaced = 0;  // snapshots on disk; snapshots that a newer one replaced before writing
    std::int64_t last_step = -1;             // of the last one on disk
    std::uint64_t bytes = 0;
    double seconds = 0, last_seconds = 0;  // of writing, all and the last
  };
  Totals totals() const;

 private:
  void work();
  void write(const Checkpoint& snapshot);
  void flush();
  void store(const std::filesystem::path& folder, std::string_view image, const std::string& inputs_hash);

  std::filesystem::path folder_, scratch_;  // scratch_: this output folder's part of it, or ""
  std::string name_;
  CheckpointOptions options_;

  // Of the writing thread alone.
  bool checked_ = false, checked_scratch_ = false;  // whether the files that stood there were looked at
  bool unflushed_ = false;
  std::string inputs_hash_;  // of the last snapshot
  double last_flush_ = 0;    // seconds of the steady clock

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Checkpoint> waiting_;
  bool busy_ = false, flush_wanted_ = false, leaving_ = false;
  std::string error_;
  Totals totals_;
  std::thread thread_;
};

}  // namespace h3
