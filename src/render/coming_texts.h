// Texts of scenes that come later in a batch, encoded where the text encoder is visited for a scene before them: its
// weights then pass once for all of them. The first rank says which scenes lack their text; what is made goes into the
// run's cache, where each scene finds it at its turn. A text that cannot be encoded is left to its own scene.
#pragma once

#include <span>
#include <vector>

#include "render/scene_render.h"
#include "text/presentation.h"
#include "text/text_encoder.h"

namespace h3 {

class ComingTexts {
 public:
  // Collective. Chooses what is encoded beside the text of `job`, whose presentation is `own`: up to 16 texts of 4096
  // rows in all, of scenes that show the text encoder nothing, since pictures and clips would have to be read and seen
  // by the vision tower, too. None with --cache off, where every scene encodes its own. The jobs of `coming` outlive
  // this, and choosing counts as the stage `cache`.
  ComingTexts(Session& session, const ComingScenes& coming, const SceneJob& job, const Presentation& own,
              StageTimes& times);

  std::size_t size() const { return presentations_.size(); }
  std::int64_t rows() const;
  // All requests of the visit: `own`, then these, which live as long as this.
  std::vector<TextRequest> beside(const TextRequest& own) const;
  // Keeps what came of these, in their order, and puts their time down as the stage `text_ahead`.
  void keep(std::span<const TextStates> states, double seconds_per_row) const;

 private:
  void keep_one(std::size_t i, const TextStates& states, double seconds_per_row) const;

  Session& session_;
  StageTimes& times_;
  std::vector<const SceneJob*> jobs_;
  std::vector<Presentation> presentations_;
};

}  // namespace h3
