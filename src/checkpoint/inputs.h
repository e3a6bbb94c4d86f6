// What a scene's steps start from and what never changes while they run: X.inputs.h5, written once. With it a stopped
// scene goes on without the text encoder and without its reference media, and it says what the scene was, so that a
// run with other settings notices. The schema is in docs/checkpoints.md.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/hdf5_library.h"
#include "checkpoint/host_array.h"

namespace h3 {

struct CheckpointInputs {
  HostArray text;         // [L, width], f32, bf16 or f16: the text encoder's states
  HostArray tags;         // [L] u8: the modality of each text row
  HostArray visual_rows;  // [n, video_row] f32: reference latents in packed order; n may be 0
  HostArray audio_rows;   // [m, audio_channels] f32; m may be 0
  nlohmann::ordered_json layout = nlohmann::ordered_json::object();  // what else packing needs, as the caller likes
  nlohmann::ordered_json scene;                                      // as resolved
  std::string model_identity;
  nlohmann::ordered_json adapters = nlohmann::ordered_json::array();
  nlohmann::ordered_json numerics;

  // {"scene", "model", "adapters", "numerics"}: what a run that goes on must agree with (require_same.h).
  nlohmann::ordered_json identity() const;
  // XXH3-128 over everything above. A checkpoint carries it, and so belongs to these inputs and no others. Remade
  // inputs have the same hash when they are the same, whatever version of this program or of HDF5 wrote them.
  std::string content_hash() const;
};

inline constexpr std::int64_t kInputsSchema = 1;

// The file's bytes.
std::string compose_inputs(const CheckpointInputs& inputs);
// Reads and verifies. Throws Hdf5Failure for a damaged file, UserError for a foreign one (hdf5_reader.h).
CheckpointInputs parse_inputs(const std::filesystem::path& path, FileLocking locking);

}  // namespace h3
