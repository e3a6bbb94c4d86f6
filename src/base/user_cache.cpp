#include "base/user_cache.h"

#include <cstdlib>

namespace h3 {

namespace fs = std::filesystem;

fs::path user_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "h3render";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? fs::path(home) / ".cache" / "h3render" : fs::path();
}

}  // namespace h3
