// How a batch stands, from the files of its output folder alone: no run needs to answer, and none needs to live.
// Manifests say what is done, X.failed.json what failed, claims what runs and what their runs still have to do,
// checkpoints how far an interrupted scene is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

enum class SceneState : std::uint8_t { done, running, failed, waiting };
std::string_view name_of(SceneState state);

struct SceneStatus {
  std::string name;
  SceneState state = SceneState::waiting;
  std::string stage;                        // running
  std::int64_t step = 0, steps = 0;         // running, or waiting with a checkpoint; steps 0: not known
  std::optional<double> seconds;            // done: of the whole render; running: since it was claimed
  std::optional<double> seconds_per_step;   // running
  std::optional<double> seconds_left;       // running: of the remaining steps
  std::optional<double> heartbeat_seconds;  // since the claim was refreshed, by this machine's clock
  std::uint64_t memory_bytes = 0;           // running: of the first rank
  int ranks = 0;                            // running
  std::string host, job;                    // running
  std::string note;                         // failed: the error; waiting: what became of an earlier run, or for what
  std::string preview;                      // not done: the file of its last preview, in the folder
  std::vector<std::string> waits_for;       // waiting: scenes whose frames it takes
};

struct StatusReport {
  std::vector<SceneStatus> scenes;
  std::optional<double> seconds_left;  // of the whole batch, when every part can be estimated
  std::size_t count(SceneState state) const;
};

// `scenes` come first, in this order; then others that have files in the folder, sorted; then those that running claims
// have still to render. Throws UserError where the folder cannot be read.
StatusReport collect_status(const std::filesystem::path& folder, const std::vector<std::string>& scenes = {});

// {"done": n, "running": n, "failed": n, "waiting": n, "seconds_left": s or null, "scenes": [{"name", "state", ...}]};
// what is not known is null or left out.
nlohmann::ordered_json to_json(const StatusReport& report);
// A table, one line a scene, and a summary line.
std::string text_of(const StatusReport& report);

}  // namespace h3
