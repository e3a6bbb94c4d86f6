#include "cache/run_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace h3 {

namespace {

constexpr std::size_t kMostInMemory = std::size_t{256} << 20;  // bytes: thousands of rows of text

bool is_finite(const HostArray& value) {
  if (value.dtype != DType::f32) return true;  // text states of other dtypes were looked at by the encoder
  for (std::size_t i = 0; i < value.bytes.size(); i += sizeof(float)) {
    float v = 0;
    std::memcpy(&v, value.bytes.data() + i, sizeof v);
    if (!std::isfinite(v)) return false;
  }
  return true;
}

}  // namespace

std::optional<RunCache::Found> RunCache::find(const std::string& key) {
  if (const auto held = held_.find(key); held != held_.end()) return held->second;
  if (const auto known = recent(key); known != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, known);
    return Found{recent_.front(), "this run", nullptr};
  }
  if (!store_) return std::nullopt;
  std::string damage;
  auto held = store_->find(key, damage);
  if (!damage.empty()) spdlog::warn("cache: {}; encoded again", damage);
  if (!held) return std::nullopt;
  const auto entry = std::make_shared<const CacheEntry>(std::move(held->entry));
  remember(entry);
  return Found{entry, "disk", std::make_shared<CacheLock>(std::move(held->lock))};
}

bool RunCache::knows(const std::string& key) const {
  std::error_code ignored;
  return held_.contains(key) || recent(key) != recent_.end() ||
         (store_ && std::filesystem::exists(store_->path_of(key), ignored));
}

RunCache::Recent::const_iterator RunCache::recent(const std::string& key) const {
  return std::find_if(recent_.begin(), recent_.end(), [&](const auto& entry) { return entry->facts.key == key; });
}

bool RunCache::hold(const std::string& key) {
  if (held_.contains(key)) return true;
  auto found = find(key);
  if (!found || held_bytes_ + found->entry->value.bytes.size() > kMostInMemory) return false;
  held_bytes_ += found->entry->value.bytes.size();
  found->lock.reset();  // it needs its file no more, and many such would be many open files
  held_.emplace(key, std::move(*found));
  return true;
}

void RunCache::keep(CacheEntry entry) {
  if (!is_finite(entry.value)) return;
  const auto kept = std::make_shared<const CacheEntry>(std::move(entry));
  remember(kept);
  if (!store_) return;
  try {
    store_->keep(*kept);
  } catch (const SceneError& e) {
    if (!told_) spdlog::warn("cache: {}; the run goes on without", e.what());
    told_ = true;
  }
}

void RunCache::remember(std::shared_ptr<const CacheEntry> entry) {
  if (entry->value.bytes.size() > kMostInMemory) return;
  recent_.push_front(std::move(entry));
  std::size_t bytes = 0;
  for (auto it = recent_.begin(); it != recent_.end();) {
    bytes += (*it)->value.bytes.size();
    it = bytes > kMostInMemory ? recent_.erase(it) : std::next(it);
  }
}

}  // namespace h3
