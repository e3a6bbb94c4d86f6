// What a scene needs of the encoders: its text states, and the latents of each picture, clip and sound. The first rank
// looks into the cache (encoding_keys.h) and shares what it found, so that all ranks agree on what is left to encode;
// for what is known, no encoder is loaded and no file decoded.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cache/run_cache.h"
#include "render/encoding_keys.h"

namespace h3 {

class SceneEncodings {
 public:
  enum class Part : std::uint8_t { text, pictures, sound };

  // Collective. With --cache off nothing is known and nothing kept.
  SceneEncodings(Session& session, const SceneJob& job, const Presentation& presentation, StageTimes& times);

  // The value, the same on every rank; null where it is to be encoded. `item`: of the scene's media.
  const HostArray* known(Part part, std::size_t item = 0) const;
  // Whether all latents of an item are known.
  bool knows(std::size_t item) const;
  // Items whose files are needed, to be shown or to be encoded.
  std::vector<bool> items_to_read() const;

  // What was encoded, on every rank, and how long it took. Files that were changed since the run looked at them are not
  // what the key says: then nothing is kept.
  void made(Part part, std::size_t item, const void* value, DType dtype, const std::vector<std::int64_t>& shape,
            double seconds);

  // [{"what", "outcome": "hit"|"miss", "from", "rows", "seconds_saved"}, ...], for the manifest.
  nlohmann::ordered_json report() const;

 private:
  struct Wish {
    Part part = Part::text;
    std::size_t item = 0;
    std::string what;
    std::int64_t rows = 0;
    std::optional<std::size_t> same_as;     // an earlier wish
    bool repeated = false;                  // a later one is the same
    std::shared_ptr<const CacheEntry> hit;  // the first rank's also has key and kind
    std::shared_ptr<CacheLock> lock;
    std::string from;
    std::optional<HostArray> value;  // made here, for the repeated
    std::string key;                 // first rank
  };

  Wish* find(Part part, std::size_t item);
  const Wish* find(Part part, std::size_t item) const;
  bool is_known(const Wish& wish) const { return wish.hit || wish.same_as; }
  bool files_unchanged(const Wish& wish) const;
  void look_up(const Presentation& presentation);
  void share();
  void tell() const;

  Session& session_;
  const SceneJob& job_;
  StageTimes& times_;
  EncodingKeys keys_;
  std::vector<Wish> wishes_;
};

}  // namespace h3
