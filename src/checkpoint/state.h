// A scene between two steps: X.checkpoint.h5. Everything the rest of the steps depends on beside the inputs, in f32 as
// it was computed, whole and in the order of the model's rows, so that it does not matter how many ranks wrote it or
// will go on. The schema is in docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/hdf5_library.h"

namespace h3 {

struct Checkpoint {
  std::int64_t step = 0;   // evaluations done
  std::int64_t steps = 0;  // of so many
  std::int64_t video_width = 0, audio_width = 0;
  std::vector<float> video;                           // [rows, video_width]
  std::vector<float> audio;                           // [rows, audio_width]
  std::vector<float> video_sigmas, audio_sigmas;      // [steps + 1] each
  std::vector<float> previous_video, previous_audio;  // as video and audio (res_multistep), or empty
  std::string generator;                              // state of the noise generator as text, or ""
  std::string inputs_hash;                            // CheckpointInputs::content_hash()

  bool operator==(const Checkpoint&) const = default;
};

inline constexpr std::int64_t kCheckpointSchema = 1;

// The file's bytes.
std::string compose_checkpoint(const Checkpoint& checkpoint);
// Reads and verifies. Throws Hdf5Failure for a damaged file, UserError for a foreign one (hdf5_reader.h).
Checkpoint parse_checkpoint(const std::filesystem::path& path, FileLocking locking);

// How far a checkpoint is, from its attributes alone.
struct CheckpointMark {
  std::int64_t step = 0, steps = 0;
  std::string inputs_hash;
};
// Throws like parse_checkpoint.
CheckpointMark parse_checkpoint_mark(const std::filesystem::path& path, FileLocking locking);

}  // namespace h3
