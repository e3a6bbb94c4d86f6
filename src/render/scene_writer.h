// Encodes and writes one scene's files on a thread of its own, in host memory alone, so that the ranks go on with the
// next scene meanwhile. It holds the scene's claim and checkpoints until the manifest is written: at any moment the
// scene is either complete or can be gone on with. Frames wait in memory up to a budget; then decoding waits for them.
// One scene is written after the other: what one that does not fit leaves behind is gone before the next needs room.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "render/claim.h"
#include "render/dump.h"
#include "render/outputs.h"
#include "render/scene_checkpoint.h"
#include "render/stage_times.h"

namespace h3 {

// What the render hands over with the last sample.
struct FinishedScene {
  nlohmann::ordered_json manifest;  // all but what the files add: hashes, files, seconds
  StageTimes times;
  Dump dump;
  std::unique_ptr<Claim> claim;
  std::optional<SceneCheckpoints> checkpoints;  // they ask the claim, so they go first
};

class SceneWriter {
 public:
  // `budget`: bytes of frames that may wait. `before`, which outlives this one, is written first (may be null).
  SceneWriter(const Session& session, const SceneJob& job, std::size_t budget, const SceneWriter* before);
  // Without complete(): drops the frames that wait and leaves no file behind.
  ~SceneWriter();
  SceneWriter(const SceneWriter&) = delete;
  SceneWriter& operator=(const SceneWriter&) = delete;

  const std::string& scene() const { return name_; }
  // As those of SceneOutputs; the values are copied.
  void add_frames(std::int64_t first, const Tensor& frames);
  void add_audio(const Tensor& pcm);
  // Nothing more comes. The thread completes the files, writes the manifest, removes the checkpoints and releases the
  // claim; where that fails it records the failure and keeps the checkpoints.
  void complete(FinishedScene scene);
  // Whether the thread is through with everything.
  bool done() const;
  // Waits for that.
  void settle() const;
  // The same; the error that the scene failed with, or "". Rethrows what no scene can be blamed for.
  std::string wait();

 private:
  struct Piece {
    std::int64_t first = 0;
    Shape shape;
    DType dtype = DType::u8;
    std::vector<char> bytes;
  };
  void add(std::int64_t first, const Tensor& values);
  void run(const SceneJob& job);
  void write();
  void take(const Piece& piece);
  std::string finish(FinishedScene& scene);

  const Session& session_;
  std::string name_;
  std::size_t budget_;
  const SceneWriter* before_;
  std::optional<SceneOutputs> outputs_;  // the thread's
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Piece> pieces_;
  std::size_t waiting_bytes_ = 0;
  std::optional<FinishedScene> finished_;
  bool dropped_ = false, done_ = false;
  std::string error_;
  std::exception_ptr broken_;
  std::thread thread_;
};

// What frames of a scene may take while they wait: a quarter of what the host has to give.
std::size_t frame_budget();

}  // namespace h3
