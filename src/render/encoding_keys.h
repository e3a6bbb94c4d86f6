// The keys under which a scene's encodings are kept: JSON of everything that decides one — the presentation and the
// files it shows, sizes and choices, the encoder's identity, the numerics (spec/text.md 7) — and nothing else, so that
// another seed or another transformer finds the same. Files go by the hash of their bytes, which needs no decoding.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "render/scene_render.h"
#include "text/presentation.h"

namespace h3 {

class EncodingKeys {
 public:
  // Both outlive this; the session knows the model's identity.
  EncodingKeys(const Session& session, const SceneJob& job) : session_(session), job_(job) {}

  std::string text(const Presentation& presentation);
  std::string pictures(const MediaItem& item);
  std::string sound(const MediaItem& item);

  // Whether files still hold what the keys say, after they were read: those shown with the text, and one that a key
  // above named.
  bool shown_unchanged() const;
  bool unchanged(const std::filesystem::path& file) const;

 private:
  std::string digest_of(const std::filesystem::path& file);
  nlohmann::ordered_json pixels_of(const MediaItem& item);
  nlohmann::ordered_json key_of(std::string_view kind, Component encoder, std::vector<std::string> stages) const;

  const Session& session_;
  const SceneJob& job_;
  std::map<std::string, std::string> digests_;  // of files, as the keys have them
};

// Whether the text encoder is shown pixels of an item.
bool is_shown(const MediaItem& item);

}  // namespace h3
