// What a run has of encodings: those on disk, and the last ones in memory, so that a prompt or a picture used twice in
// a batch is encoded once also where nothing can be written. Never an error: what cannot be read is encoded again, and
// what cannot be written is told once.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cache/cache_store.h"

namespace h3 {

class RunCache {
 public:
  // `store` may be null: memory alone.
  explicit RunCache(std::unique_ptr<CacheStore> store) : store_(std::move(store)) {}

  struct Found {
    std::shared_ptr<const CacheEntry> entry;
    std::string from;                 // "disk" or "this run"
    std::shared_ptr<CacheLock> lock;  // of an entry on disk: keep it as long as the entry is of use
  };
  std::optional<Found> find(const std::string& key);
  // Whether find() would have it, as far as that can be told without reading.
  bool knows(const std::string& key) const;
  // Finds an entry and has it until the end of the run. False where there is none, or no more room for such.
  bool hold(const std::string& key);
  // Of values of f32, those that are not finite are not kept.
  void keep(CacheEntry entry);

 private:
  using Recent = std::list<std::shared_ptr<const CacheEntry>>;  // the last one used first
  Recent::const_iterator recent(const std::string& key) const;
  void remember(std::shared_ptr<const CacheEntry> entry);

  std::unique_ptr<CacheStore> store_;
  Recent recent_;
  std::map<std::string, Found> held_;
  std::size_t held_bytes_ = 0;
  bool told_ = false;
};

}  // namespace h3
