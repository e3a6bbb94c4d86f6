#include "render/host_reserve.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace h3 {

static double gib_of(const std::string& value, const std::string& option) {
  std::size_t read = 0;
  double gib = -1;
  try {
    gib = std::stod(value, &read);
  } catch (const std::exception&) {
  }
  if (read != value.size() || !(gib >= 0) || gib > 1e6)
    throw UserError(option, "", value, "auto, or GiB from 0 to 1000000");
  return gib;
}

void parse_host_reserve(const std::string& value, const std::string& option) {
  if (value != "auto") gib_of(value, option);
}

std::uint64_t host_reserve(const RunOptions& options, const HostMemory& host) {
  constexpr std::uint64_t kMost = std::uint64_t{8} << 30;
  if (options.host_reserve == "auto") return std::min(host.total / 32, kMost);
  return static_cast<std::uint64_t>(std::ceil(gib_of(options.host_reserve, "--host-reserve") * 0x1p30));
}

}  // namespace h3
