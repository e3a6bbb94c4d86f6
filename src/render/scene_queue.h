// The scenes of a run as one group of ranks goes through them. The queue itself is the claim files of the output
// folder: whoever claims a scene renders it, be it another group of this run or another run. Rank 0 of the group
// decides and claims; the others follow.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "render/chain.h"
#include "render/claim.h"
#include "render/idle_time.h"
#include "render/progress.h"
#include "render/run_control.h"
#include "render/scene_jobs.h"
#include "render/scene_writer.h"
#include "render/session.h"

namespace h3 {

class SceneQueue {
 public:
  // Several groups take the longest scenes first, so that none is left with a long one at the end; a single one keeps
  // the order that was given.
  SceneQueue(Session& session, const SceneJobs& jobs, RunControl& control, Progress& progress);

  // Reads for all groups what any of them can need, if any scene is left to render. Collective over the world.
  void prepare();
  // Renders what can be rendered. Collective over the group; throws RunStopped. While a scene is rendered the files of
  // the one before may still be written.
  void run();
  // Waits for the last scene's files, also after a stop. Collective over the group.
  void finish();
  // Scenes that failed in this group; known on its first rank.
  const std::set<std::string>& failed() const { return failed_; }

 private:
  void finish_writing();
  bool too_many_failures() const;
  bool visit(const SceneJob& job);
  // What the group does with a scene, and the frames it takes from others.
  struct Decision {
    std::string word;  // "render" (with the claim on the first rank), "skip", "held", or what is wrong
    LinkedFrames links;
  };
  Decision decide(const SceneJob& job, std::unique_ptr<Claim>& claim);
  ComingScenes coming() const;
  bool is_untouched(const SceneJob& job) const;
  bool waits_for_parents(const SceneJob& job) const;
  std::optional<LinkedFrames> links_of(const SceneJob& job) const;
  bool has_failed(const std::string& scene) const;
  void know_model(const SceneJob& job);
  void learn_model();
  bool texts_missing();
  std::string decide_first(const SceneJob& job, std::unique_ptr<Claim>& claim);
  void tidy(const SceneJob& job) const;
  std::string by_files(const SceneJob& job) const;
  bool is_of_this_run(const std::filesystem::path& record) const;
  bool has_manifest(const SceneJob& job) const;
  void announce(const SceneJob& job) const;
  void leave(const std::vector<const SceneJob*>& held) const;

  Session& s_;
  RunControl& control_;
  Progress& progress_;
  std::vector<const SceneJob*> order_;
  std::vector<std::string> names_;  // of all scenes of the run, the bad ones too
  std::set<std::string> open_;      // scenes that this group has not seen the end of
  std::unique_ptr<ClaimDesk> desk_;
  RenderedBy by_;
  std::unique_ptr<SceneWriter> writer_;  // of the scene before, on the first rank
  IdleTime idle_;
  std::set<std::string> failed_;
  std::int64_t rendered_ = 0;
  bool told_ = false;
};

}  // namespace h3
