#include "render/status.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "checkpoint/resume.h"
#include "render/claim_record.h"
#include "render/preview.h"
#include "render/progress.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr double kStaleSeconds = 60;  // as runs judge claims

// The scene that a file of the output folder belongs to, or "".
std::string scene_of(const std::string& file) {
  static constexpr std::string_view kEndings[] = {".manifest.json", ".failed.json",        ".claim",
                                                  ".checkpoint.h5", ".checkpoint.prev.h5", ".inputs.h5"};
  if (file.starts_with('.')) return "";
  for (const std::string_view ending : kEndings)
    if (file.size() > ending.size() && file.ends_with(ending)) return file.substr(0, file.size() - ending.size());
  return "";
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = scene_of(entry.path().filename().string());
      if (!name.empty()) names.insert(name);
    }
  } catch (const fs::filesystem_error& e) {
    throw UserError(folder.string(), "", "", "cannot be read: " + e.code().message());
  }
  return names;
}

// The object in a JSON file; nothing where it is missing, going away, or no object.
std::optional<nlohmann::json> json_in(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    auto j = nlohmann::json::parse(read_file(path));
    if (j.is_object()) return j;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ClaimSighting> claim_in(const fs::path& folder, const std::string& name) {
  try {
    return look_at_claim(claim_path(folder, name));
  } catch (const SceneError&) {
    return std::nullopt;
  }
}

// One scene's files, looked at in the order in which they decide.
class Look {
 public:
  Look(const fs::path& folder, const std::string& name) : folder_(folder), claim_(claim_in(folder, name)) {
    status_.name = name;
    if (claim_) status_.heartbeat_seconds = std::max(0.0, wall_seconds() - claimed_seconds());
  }

  SceneStatus status() {
    if (!done() && !running() && !failed()) waiting();
    std::error_code error;
    if (status_.state != SceneState::done && fs::exists(preview_path(folder_, status_.name), error))
      status_.preview = preview_path(folder_, status_.name).filename();
    return status_;
  }

  // Whose frames scenes of the run with this claim take.
  std::map<std::string, std::vector<std::string>> parents() const {
    return claim_ && claim_->record ? claim_->record->parents : std::map<std::string, std::vector<std::string>>();
  }

  // Scenes that the run with this claim still has to render.
  std::vector<std::string> batch() const {
    return claim_ && claim_->record ? claim_->record->batch : std::vector<std::string>();
  }

 private:
  fs::path file(const char* ending) const { return folder_ / (status_.name + ending); }
  double claimed_seconds() const { return static_cast<double>(claim_->mtime_ns) * 1e-9; }

  bool alive() const {
    if (!claim_) return false;
    const OwnerState owner = claim_->record ? state_of(claim_->record->owner) : OwnerState::unknown;
    return owner == OwnerState::alive || (owner == OwnerState::unknown && *status_.heartbeat_seconds < kStaleSeconds);
  }

  // A manifest that is older than a live claim is of a render that is being replaced.
  bool done() {
    const auto manifest = json_in(file(".manifest.json"));
    if (!manifest) return false;
    std::error_code error;
    const auto written = fs::last_write_time(file(".manifest.json"), error).time_since_epoch();
    const auto now = fs::file_time_type::clock::now().time_since_epoch();
    const double age = std::chrono::duration<double>(now - written).count();
    if (alive() && claim_->record && wall_seconds() - age < claim_->record->started) return false;
    status_.state = SceneState::done;
    const auto seconds = manifest->value("/seconds/total"_json_pointer, nlohmann::json());
    if (seconds.is_number()) status_.seconds = seconds.get<double>();
    status_.heartbeat_seconds.reset();
    return true;
  }

  bool running() {
    if (!alive()) return false;
    status_.state = SceneState::running;
    if (!claim_->record) return true;
    const ClaimRecord& record = *claim_->record;
    const ClaimStatus& s = record.status;
    status_.stage = s.stage;
    status_.step = s.step;
    status_.steps = s.steps;
    status_.memory_bytes = s.memory_bytes;
    status_.ranks = s.ranks;
    status_.host = record.owner.host;
    status_.job = record.owner.job;
    status_.seconds = std::max(0.0, wall_seconds() - record.started);
    if (s.seconds_per_step <= 0) return true;
    status_.seconds_per_step = s.seconds_per_step;
    status_.seconds_left = s.seconds_per_step * static_cast<double>(s.steps - s.step);
    return true;
  }

  bool failed() {
    const auto record = json_in(file(".failed.json"));
    if (!record) return false;
    status_.state = SceneState::failed;
    const auto error = record->find("error");
    if (error != record->end() && error->is_string()) status_.note = error->get<std::string>();
    return true;
  }

  void waiting() {
    status_.state = SceneState::waiting;
    if (const auto mark = peek_checkpoint(folder_, status_.name)) {
      status_.step = mark->step;
      status_.steps = mark->steps;
      status_.note = fmt::format("stopped at step {} of {}", mark->step, mark->steps);
    }
    if (!claim_) return;
    status_.note += fmt::format("{}its run is gone, no heartbeat for {}", status_.note.empty() ? "" : "; ",
                                duration_text(*status_.heartbeat_seconds));
  }

  fs::path folder_;
  std::optional<ClaimSighting> claim_;
  SceneStatus status_;
};

// Says of scenes that wait for a frame whose it is.
void tell_parents(StatusReport& report, const std::map<std::string, std::vector<std::string>>& parents) {
  const auto is_done = [&](const std::string& name) {
    return std::any_of(report.scenes.begin(), report.scenes.end(),
                       [&](const SceneStatus& s) { return s.name == name && s.state == SceneState::done; });
  };
  for (SceneStatus& scene : report.scenes) {
    const auto found = parents.find(scene.name);
    if (scene.state != SceneState::waiting || found == parents.end()) continue;
    for (const std::string& parent : found->second) {
      if (is_done(parent)) continue;
      scene.waits_for.push_back(parent);
      scene.note += fmt::format("{}for a frame of {}", scene.note.empty() ? "" : "; ", parent);
    }
  }
}

// What is left, if as many scenes go on side by side as now, and each takes what the finished ones took on average.
std::optional<double> estimate(const StatusReport& report) {
  double scene_seconds = 0, running_left = 0, longest = 0;
  std::size_t known = 0;
  for (const SceneStatus& s : report.scenes) {
    if (s.state == SceneState::done && s.seconds) {
      scene_seconds += *s.seconds;
      ++known;
    }
    if (s.state != SceneState::running) continue;
    if (!s.seconds_left) return std::nullopt;
    running_left += *s.seconds_left;
    longest = std::max(longest, *s.seconds_left);
    if (s.steps > 0 && s.seconds_per_step) {
      scene_seconds += *s.seconds_per_step * static_cast<double>(s.steps);
      ++known;
    }
  }
  const std::size_t waiting = report.count(SceneState::waiting), running = report.count(SceneState::running);
  if (waiting > 0 && known == 0) return std::nullopt;
  const double mean = known > 0 ? scene_seconds / static_cast<double>(known) : 0;
  const double work = running_left + static_cast<double>(waiting) * mean;
  return std::max(longest, work / static_cast<double>(std::max<std::size_t>(1, running)));
}

std::string details_of(const SceneStatus& s) {
  if (s.state == SceneState::done) return s.seconds ? duration_text(*s.seconds) : "";
  if (s.state != SceneState::running) return s.note;
  std::string text = s.stage;
  if (s.steps > 0) text += fmt::format(" step {}/{}", s.step, s.steps);
  if (s.seconds_per_step) text += fmt::format(", {} a step", duration_text(*s.seconds_per_step));
  if (s.seconds_left) text += fmt::format(", {} left", duration_text(*s.seconds_left));
  if (s.memory_bytes > 0) text += fmt::format(", {}", bytes_text(static_cast<double>(s.memory_bytes)));
  if (s.ranks > 0) text += fmt::format(", {} rank{}", s.ranks, s.ranks == 1 ? "" : "s");
  if (!s.host.empty()) text += " on " + s.host;
  if (!s.job.empty()) text += ", job " + s.job;
  return text;
}

}  // namespace

std::string_view name_of(SceneState state) {
  switch (state) {
    case SceneState::done:
      return "done";
    case SceneState::running:
      return "running";
    case SceneState::failed:
      return "failed";
    case SceneState::waiting:
      return "waiting";
  }
  return "";
}

std::size_t StatusReport::count(SceneState state) const {
  return static_cast<std::size_t>(
      std::count_if(scenes.begin(), scenes.end(), [&](const SceneStatus& s) { return s.state == state; }));
}

StatusReport collect_status(const fs::path& folder, const std::vector<std::string>& scenes) {
  std::vector<std::string> order = scenes;
  std::set<std::string> known(scenes.begin(), scenes.end());
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) order.push_back(name);
  };
  for (const std::string& name : names_in(folder)) add(name);
  StatusReport report;
  std::map<std::string, std::vector<std::string>> parents;
  // Claims name further scenes of their runs, so the list grows while it is walked.
  for (std::size_t i = 0; i < order.size(); ++i) {
    Look look(folder, order[i]);
    report.scenes.push_back(look.status());
    if (report.scenes.back().state != SceneState::running) continue;
    for (const std::string& name : look.batch()) add(name);
    for (const auto& [child, names] : look.parents()) parents[child] = names;
  }
  tell_parents(report, parents);
  report.seconds_left = estimate(report);
  return report;
}

nlohmann::ordered_json to_json(const StatusReport& report) {
  nlohmann::ordered_json j;
  for (const SceneState state : {SceneState::done, SceneState::running, SceneState::failed, SceneState::waiting})
    j[std::string(name_of(state))] = report.count(state);
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  j["seconds_left"] = number(report.seconds_left);
  j["scenes"] = nlohmann::ordered_json::array();
  for (const SceneStatus& s : report.scenes) {
    nlohmann::ordered_json scene{{"name", s.name}, {"state", name_of(s.state)}};
    if (s.steps > 0) scene.update({{"step", s.step}, {"steps", s.steps}});
    if (s.state == SceneState::done || s.state == SceneState::running) scene["seconds"] = number(s.seconds);
    if (s.state == SceneState::running) {
      scene["stage"] = s.stage;
      scene["seconds_per_step"] = number(s.seconds_per_step);
      scene["seconds_left"] = number(s.seconds_left);
      scene["heartbeat_seconds"] = number(s.heartbeat_seconds);
      scene["memory_bytes"] = s.memory_bytes;
      scene["ranks"] = s.ranks;
      scene["host"] = s.host;
      scene["job"] = s.job;
    }
    if (s.state == SceneState::failed) scene["error"] = s.note;
    if (s.state == SceneState::waiting && !s.note.empty()) scene["note"] = s.note;
    if (!s.preview.empty()) scene["preview"] = s.preview;
    if (!s.waits_for.empty()) scene["waits_for"] = s.waits_for;
    j["scenes"].push_back(std::move(scene));
  }
  return j;
}

std::string text_of(const StatusReport& report) {
  std::size_t width = 4;
  for (const SceneStatus& s : report.scenes) width = std::max(width, s.name.size());
  std::string text;
  for (const SceneStatus& s : report.scenes) {
    std::string details = details_of(s);
    if (!s.preview.empty()) details += (details.empty() ? "" : ", ") + s.preview;
    std::replace(details.begin(), details.end(), '\n', ' ');
    text += fmt::format("{:<{}}  {:<7}  {}\n", s.name, width, name_of(s.state), details);
  }
  text += fmt::format("{} done, {} running, {} failed, {} waiting", report.count(SceneState::done),
                      report.count(SceneState::running), report.count(SceneState::failed),
                      report.count(SceneState::waiting));
  if (report.seconds_left && *report.seconds_left > 0)
    text += fmt::format("; about {} left", duration_text(*report.seconds_left));
  return text + "\n";
}

}  // namespace h3
