// Finds where a scene can go on. The newest sound checkpoint is taken; one that storage damaged is passed over for the
// previous one, with a note for the log. What another program, model or version left is refused, and nothing is
// changed by looking.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/inputs.h"
#include "checkpoint/state.h"

namespace h3 {

// Nothing sound is left of what was there. A UserError, since by default a person decides; a run that was told to
// start damaged scenes over may catch it.
class DamagedCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

struct ResumePoint {
  Checkpoint state;
  std::filesystem::path file;  // that `state` came from
  // Nothing when NAME.inputs.h5 is missing or damaged. Inputs that are made again may be used when their content_hash()
  // equals state.inputs_hash.
  std::optional<CheckpointInputs> inputs;
  std::vector<std::string> notes;  // what was damaged and passed over
};

struct ResumeOptions {
  FileLocking locking = FileLocking::automatic;
  std::filesystem::path scratch;  // as the writer's
};

// Nothing where the scene has no checkpoint. Throws DamagedCheckpoint, and UserError for a file of another kind, a
// newer schema, absurd sizes, or a checkpoint that does not belong to NAME.inputs.h5.
std::optional<ResumePoint> read_checkpoint(const std::filesystem::path& folder, const std::string& name,
                                           const ResumeOptions& options = {});

// The inputs alone; nothing where they are missing or damaged (then `note` receives why).
std::optional<CheckpointInputs> read_inputs(const std::filesystem::path& folder, const std::string& name,
                                            FileLocking locking, std::string& note);

// How far a scene is, for status displays: the newest readable mark, nothing where there is none. Never throws.
std::optional<CheckpointMark> peek_checkpoint(const std::filesystem::path& folder, const std::string& name);

}  // namespace h3
