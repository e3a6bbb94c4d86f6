#include "checkpoint/resume.h"

#include "checkpoint/paths.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

// One folder's checkpoints, newest first.
class Search {
 public:
  Search(const fs::path& folder, const std::string& name, FileLocking locking)
      : paths_(checkpoint_paths(folder, name)), locking_(locking) {}

  std::optional<ResumePoint> newest_sound() {
    for (const fs::path& path : {paths_.newest, paths_.previous}) {
      if (!is_there(path)) continue;
      any_ = true;
      try {
        ResumePoint point{parse_checkpoint(path, locking_), path, {}, {}};
        return point;
      } catch (const Hdf5Failure& e) {
        damage_.push_back(fmt::format("{} is damaged and was passed over: {}", path.string(), e.what()));
      }
    }
    return std::nullopt;
  }

  bool any() const { return any_; }
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  CheckpointPaths paths_;
  FileLocking locking_;
  bool any_ = false;
  std::vector<std::string> damage_;
};

// A scratch disk is looked at too, but what is wrong there only makes it useless. `inputs_hash` "" is not known.
std::optional<ResumePoint> in_scratch(const fs::path& folder, const std::string& name, const ResumeOptions& options,
                                      const std::string& inputs_hash, std::vector<std::string>& notes) {
  if (options.scratch.empty()) return std::nullopt;
  try {
    Search search(scratch_folder(options.scratch, folder), name, options.locking);
    std::optional<ResumePoint> point = search.newest_sound();
    notes.insert(notes.end(), search.damage().begin(), search.damage().end());
    if (!point || inputs_hash.empty() || point->state.inputs_hash == inputs_hash) return point;
    notes.push_back(fmt::format("{} belongs to other inputs and was passed over", point->file.string()));
  } catch (const UserError& e) {
    notes.push_back(e.what());
  }
  return std::nullopt;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace

std::optional<CheckpointInputs> read_inputs(const fs::path& folder, const std::string& name, FileLocking locking,
                                            std::string& note) {
  const fs::path path = checkpoint_paths(folder, name).inputs;
  if (!is_there(path)) {
    note = path.string() + " is missing";
    return std::nullopt;
  }
  try {
    return parse_inputs(path, locking);
  } catch (const Hdf5Failure& e) {
    note = fmt::format("{} is damaged: {}", path.string(), e.what());
    return std::nullopt;
  }
}

std::optional<ResumePoint> read_checkpoint(const fs::path& folder, const std::string& name,
                                           const ResumeOptions& options) {
  Search search(folder, name, options.locking);
  std::optional<ResumePoint> point = search.newest_sound();
  std::vector<std::string> notes = search.damage();
  std::string note;
  std::optional<CheckpointInputs> inputs = read_inputs(folder, name, options.locking, note);
  const std::string inputs_hash = inputs ? inputs->content_hash() : "";
  std::optional<ResumePoint> scratch = in_scratch(folder, name, options, inputs_hash, notes);
  if (!point && !scratch && !search.any()) return std::nullopt;
  if (!point && !scratch)
    throw DamagedCheckpoint(
        fmt::format("{}; no sound checkpoint is left. --resume restart starts the scene again, as removing these files does", joined(notes)));
  if (scratch && (!point || scratch->state.step > point->state.step)) point = std::move(scratch);
  if (inputs && point->state.inputs_hash != inputs_hash)
    throw UserError(point->file.string(), "inputs_hash", point->state.inputs_hash,
                    fmt::format("{} has {}: the checkpoint belongs to another scene or model; move it away or start "
                                "the scene over",
                                checkpoint_paths(folder, name).inputs.string(), inputs_hash));
  if (!note.empty()) notes.push_back(note);
  point->inputs = std::move(inputs);
  point->notes = std::move(notes);
  return point;
}

std::optional<CheckpointMark> peek_checkpoint(const fs::path& folder, const std::string& name) {
  const CheckpointPaths paths = checkpoint_paths(folder, name);
  for (const fs::path& path : {paths.newest, paths.previous}) {
    try {
      if (is_there(path)) return parse_checkpoint_mark(path, FileLocking::automatic);
    } catch (const std::exception&) {
      continue;  // the older one may be readable
    }
  }
  return std::nullopt;
}

}  // namespace h3
