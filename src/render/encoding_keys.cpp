#include "render/encoding_keys.h"

#include <algorithm>

#include "base/hash.h"
#include "media/library_versions.h"
#include "render/file_contents.h"
#include "scene/choices.h"
#include "weights/identity.h"

namespace h3 {

using Json = nlohmann::ordered_json;

constexpr int kKeySchema = 1;

template <typename T>
static std::string hash_of(const std::vector<T>& values) {
  return hash_hex(values.data(), values.size() * sizeof(T));
}

// The numerics with no other stages than these.
static Json numerics_of(Json numerics, const std::vector<std::string>& stages) {
  Json own = Json::object();
  for (const std::string& stage : stages) own[stage] = numerics.at("stages").at(stage);
  numerics["stages"] = own;
  numerics.erase("id");
  return numerics;
}

bool is_shown(const MediaItem& item) {
  return item.presented() && item.kind != MediaKind::sound;
}

// Frames of other scenes have no hash of their file in the job.
std::string EncodingKeys::digest_of(const std::filesystem::path& file) {
  std::string& digest = digests_[file.string()];
  if (!digest.empty()) return digest;
  const auto found = job_.contents.find(file.string());
  digest = found != job_.contents.end() ? found->second : hash_of_file(file);
  return digest;
}

// What the pixels of an item are made from.
Json EncodingKeys::pixels_of(const MediaItem& item) {
  return {{"file", digest_of(item.picture)},
          {"kind", name_of(item.kind)},
          {"alpha", name_of(job_.scene.alpha)},
          {"width", item.size.width},
          {"height", item.size.height},
          {"covers", item.covers},
          {"frames", item.frames}};
}

Json EncodingKeys::key_of(std::string_view kind, Component encoder, std::vector<std::string> stages) const {
  if (!job_.media.empty()) stages.emplace_back("media");
  Json key{{"schema", kKeySchema},
           {"kind", kind},
           {"encoder", session_.component_identity(encoder)},
           {"config", hash_hex(config_text(session_.config()))},
           {"numerics", numerics_of(session_.numerics(), stages)}};
  if (!job_.media.empty()) key["decoders"] = media_library_versions();
  return key;
}

std::string EncodingKeys::text(const Presentation& presentation) {
  Json key = key_of("text", Component::text_encoder, {"tokenizer", "vision", "text"});
  Json& inputs = key["inputs"] = {{"ids", hash_of(presentation.ids)},
                                  {"tags", hash_of(presentation.tags)},
                                  {"types", hash_of(presentation.types)},
                                  {"positions", Json::array()},
                                  {"shown", Json::array()}};
  for (const auto& axis : presentation.positions) inputs["positions"].push_back(hash_of(axis));
  for (const MediaItem& item : job_.media)
    if (is_shown(item)) inputs["shown"].push_back(pixels_of(item));
  return key.dump();
}

std::string EncodingKeys::pictures(const MediaItem& item) {
  Json key = key_of("pictures", Component::video_vae, {"video_encoder"});
  Json& inputs = key["inputs"] = pixels_of(item);
  inputs["encoded_frames"] = item.encoded_frames;
  inputs["posterior"] = name_of(job_.scene.posterior);
  return key.dump();
}

std::string EncodingKeys::sound(const MediaItem& item) {
  Json key = key_of("sound", Component::audio_vae, {"audio_encoder"});
  key["inputs"] = {{"file", digest_of(item.sound)},
                   {"downmix", job_.scene.downmix},
                   {"sound_frames", item.sound_frames},
                   {"samples", item.samples},
                   {"latents", item.audio_latents}};
  return key.dump();
}

bool EncodingKeys::shown_unchanged() const {
  return std::all_of(job_.media.begin(), job_.media.end(),
                     [&](const MediaItem& item) { return !is_shown(item) || unchanged(item.picture); });
}

bool EncodingKeys::unchanged(const std::filesystem::path& file) const {
  return hash_of_file(file) == digests_.at(file.string());
}

}  // namespace h3
