#include "render/cache_options.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/user_cache.h"

namespace h3 {

namespace fs = std::filesystem;

fs::path cache_folder(const std::string& named, const std::string& option) {
  if (!named.empty()) return named;
  const fs::path user = user_cache();
  if (user.empty()) throw UserError(option, "", "", "name a folder: neither XDG_CACHE_HOME nor HOME is set");
  return user / "encodings";
}

std::uint64_t parse_cache_size(const std::string& text, const std::string& option) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0, kMost = 1e9;
  double size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || !(size > 0 && size <= kMost))
    throw UserError(option, "", text, "a number of GiB above 0, such as 20 or 0.5");
  return static_cast<std::uint64_t>(size * kGiB);
}

std::unique_ptr<RunCache> open_run_cache(const RunOptions& options) {
  if (options.cache == "off") return nullptr;
  std::unique_ptr<CacheStore> store;
  if (options.cache == "on") {
    try {
      store = std::make_unique<CacheStore>(cache_folder(options.cache_folder, "--cache-folder"),
                                           parse_cache_size(options.cache_size, "--cache-size"));
    } catch (const UserError& e) {
      spdlog::warn("cache: {}; this run keeps encodings in memory alone", e.what());
    }
  }
  return std::make_unique<RunCache>(std::move(store));
}

}  // namespace h3
