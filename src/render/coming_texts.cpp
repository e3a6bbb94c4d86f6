#include "render/coming_texts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "render/encoding_keys.h"
#include "render/scene_jobs.h"

namespace h3 {

namespace {

// With so many the weights' way costs a scene next to nothing. So few rows take no more of a device than a reference
// clip does, and their states stay in a run's memory (run_cache.h) beside the latents of some scenes.
constexpr std::size_t kMostTexts = 16;
constexpr std::int64_t kMostRows = 4096;
// Looking at a scene is a few questions to the output folder's file system.
constexpr std::size_t kFarthest = 256;

bool shows_nothing(const SceneJob& job) {
  return std::none_of(job.media.begin(), job.media.end(), is_shown);
}

// First rank: indices of the scenes. `known` are keys of texts that are taken care of.
std::vector<std::size_t> choose(Session& session, const ComingScenes& coming, std::set<std::string> known) {
  std::vector<std::size_t> chosen;
  std::int64_t rows = 0;
  const std::size_t end = std::min(coming.jobs.size(), kFarthest);
  for (std::size_t i = 0; i < end && chosen.size() < kMostTexts; ++i) {
    const SceneJob& job = *coming.jobs[i];
    if (!shows_nothing(job) || !coming.is_untouched(job)) continue;
    const Presentation text = present_scene(job, session.config(), session.tokenizer());
    const std::string key = EncodingKeys(session, job).text(text);
    if (rows + text.rows() > kMostRows || session.cache()->knows(key) || !known.insert(key).second) continue;
    rows += text.rows();
    chosen.push_back(i);
  }
  return chosen;
}

std::string reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

ComingTexts::ComingTexts(Session& session, const ComingScenes& coming, const SceneJob& job, const Presentation& own,
                         StageTimes& times)
    : session_(session), times_(times) {
  if (session.options().cache == "off" || coming.jobs.empty()) return;
  StageTimer timer(times_, "cache");
  nlohmann::json chosen = nlohmann::json::array();
  if (session.first()) chosen = choose(session, coming, {EncodingKeys(session, job).text(own)});
  chosen = nlohmann::json::parse(session.communicator().broadcast_text(chosen.dump()));
  for (const auto& i : chosen) jobs_.push_back(coming.jobs.at(i.get<std::size_t>()));
  for (const SceneJob* each : jobs_)
    presentations_.push_back(present_scene(*each, session.config(), session.tokenizer()));
}

std::int64_t ComingTexts::rows() const {
  std::int64_t rows = 0;
  for (const Presentation& text : presentations_) rows += text.rows();
  return rows;
}

std::vector<TextRequest> ComingTexts::beside(const TextRequest& own) const {
  std::vector<TextRequest> requests{own};
  for (const Presentation& text : presentations_) requests.push_back({text});
  return requests;
}

void ComingTexts::keep(std::span<const TextStates> states, double seconds_per_row) const {
  if (jobs_.empty()) return;
  times_.add("text_ahead", static_cast<double>(rows()) * seconds_per_row);
  if (!session_.first()) return;
  StageTimer timer(times_, "text_ahead");
  std::string names;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    names += (i ? ", " : "") + jobs_[i]->scene.name;
    keep_one(i, states[i], seconds_per_row);
  }
  spdlog::info("text of {} coming scene{} encoded in the same visit: {}", jobs_.size(), jobs_.size() == 1 ? "" : "s",
               names);
}

void ComingTexts::keep_one(std::size_t i, const TextStates& states, double seconds_per_row) const {
  const std::string& name = jobs_[i]->scene.name;
  if (states.error) return spdlog::warn("{}: its text is left to its turn: {}", name, reason_of(states.error));
  const Tensor& t = states.hidden;
  session_.cache()->keep({{EncodingKeys(session_, *jobs_[i]).text(presentations_[i]), "text", t.size(0),
                           seconds_per_row * static_cast<double>(t.size(0))},
                          HostArray::copy_of(t.data, t.dtype, {t.size(0), t.size(1)})});
}

}  // namespace h3
