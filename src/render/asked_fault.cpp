#include "render/asked_fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/log.h"

namespace h3 {

void AskedFault::happen(int at_rank, const std::string& at_stage) const {
  if (at_rank != rank || at_stage != stage) return;
  if (fails) throw RunError(fmt::format("failed in stage {} because --fail asked for it", stage));
  spdlog::info("rank {}: loses {} s in stage {} because --fail asked for it", rank, seconds, stage);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

AskedFault parse_asked_fault(const std::string& text, const std::string& option) {
  static constexpr std::array<std::string_view, 7> kStages{"validate", "load", "media", "text",
                                                           "encode",   "step", "decode"};
  constexpr double kForever = 1e6;
  if (text.empty()) return {};
  const auto wrong = [&] {
    return UserError(option, "", text,
                     "RANK:STAGE, RANK:STAGE:hang or RANK:STAGE:SECONDS with a stage of validate, load, media, text, "
                     "encode, step, decode");
  };
  const auto number = [&](std::string_view part, auto& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 0) throw wrong();
  };
  const std::string_view all = text;
  const std::size_t first = all.find(':');
  if (first == all.npos) throw wrong();
  const std::size_t second = std::min(all.find(':', first + 1), all.size());
  AskedFault fault;
  number(all.substr(0, first), fault.rank);
  fault.stage = all.substr(first + 1, second - first - 1);
  if (std::find(kStages.begin(), kStages.end(), fault.stage) == kStages.end()) throw wrong();
  fault.fails = second == all.size();
  if (fault.fails) return fault;
  const std::string_view how = all.substr(second + 1);
  if (how == "hang")
    fault.seconds = kForever;
  else
    number(how, fault.seconds);
  return fault;
}

}  // namespace h3
