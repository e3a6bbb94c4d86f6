#include "cache/cache_entry.h"

#include "base/error.h"
#include "checkpoint/hdf5_composer.h"
#include "checkpoint/hdf5_reader.h"

namespace h3 {

namespace {

constexpr char kKind[] = "h3render cache entry";
constexpr std::int64_t kSchema = 1;
constexpr std::int64_t kMostAxes = 8;

constexpr DatasetNote kValue{"value", "as its kind has them: row, feature; channel, frame, height, width", "1",
                             "what the encoder made"};
constexpr DatasetNote kFacts{"facts", "none", "none", "JSON: kind, rows of the sequence, seconds that encoding took"};
constexpr DatasetNote kKey{"key", "none", "none", "JSON: everything that decides the value"};

Hdf5Reader open_entry(const std::filesystem::path& path) {
  // Entries never change under their names, and are locked by flock (cache_lock.h).
  Hdf5Reader file(path, FileLocking::off);
  file.require(kKind, kSchema);
  return file;
}

CacheFacts facts_in(const Hdf5Reader& file) {
  CacheFacts facts;
  facts.key = file.text("key");
  try {
    const nlohmann::ordered_json json = file.json("facts");
    json.at("kind").get_to(facts.kind);
    json.at("rows").get_to(facts.rows);
    json.at("seconds").get_to(facts.seconds);
  } catch (const nlohmann::json::exception& e) {
    throw Hdf5Failure(fmt::format("its facts cannot be read: {}", e.what()));
  }
  return facts;
}

}  // namespace

std::string compose_entry(const CacheEntry& entry) {
  Hdf5Composer file(kKind, kSchema);
  file.attribute("axes", static_cast<std::int64_t>(entry.value.shape.size()));
  file.text(kKey, entry.facts.key);
  const nlohmann::ordered_json facts{
      {"kind", entry.facts.kind}, {"rows", entry.facts.rows}, {"seconds", entry.facts.seconds}};
  file.text(kFacts, facts.dump());
  file.dataset(kValue, entry.value.dtype, entry.value.shape, entry.value.bytes.data());
  return file.finish();
}

CacheEntry parse_entry(const std::filesystem::path& path) {
  const Hdf5Reader file = open_entry(path);
  CacheEntry entry{facts_in(file), {}};
  const std::int64_t axes = file.integer("axes");
  if (axes < 1 || axes > kMostAxes) throw Hdf5Failure(fmt::format("its value has {} axes", axes));
  entry.value = file.array("value", static_cast<std::size_t>(axes));
  return entry;
}

CacheFacts parse_entry_facts(const std::filesystem::path& path) {
  return facts_in(open_entry(path));
}

}  // namespace h3
