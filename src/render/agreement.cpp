#include "render/agreement.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

namespace h3 {

std::string build_id() {
  return hash_hex(read_file("/proc/self/exe"));
}

void require_agreement(Communicator& communicator, const std::string& host,
                       const std::map<std::string, std::string>& facts) {
  if (communicator.size() == 1) return;
  constexpr std::size_t kShown = 200;
  nlohmann::json mine{{"host", host}, {"facts", facts}};
  const auto all = communicator.gather_text(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  const nlohmann::json first = nlohmann::json::parse(all.at(0));
  for (std::size_t r = 1; r < all.size(); ++r) {
    const nlohmann::json other = nlohmann::json::parse(all[r]);
    for (const auto& [field, value] : first["facts"].items()) {
      const std::string expected = value, found = other["facts"].value(field, "");
      if (found == expected) continue;
      throw UserError(
          fmt::format("ranks disagree on {}: rank 0 on {} has {}, rank {} on {} has {}; start every rank with "
                      "the same program, options, scenes and model",
                      field, first["host"].get<std::string>(), expected.substr(0, kShown), r,
                      other["host"].get<std::string>(), found.substr(0, kShown)));
    }
  }
}

std::string first_error(Communicator& communicator, const std::string& host, const std::string& error) {
  if (communicator.size() == 1) return error;
  // The common case costs one tiny reduction.
  const std::int64_t failing = error.empty() ? 0 : communicator.size() - communicator.rank();
  const std::int64_t agreed = communicator.agree_max(failing);
  if (agreed == 0) return "";
  const int rank = communicator.size() - static_cast<int>(agreed);
  const std::string text = fmt::format("rank {} on {}: {}", rank, host, error);
  return communicator.broadcast_text(text, rank);
}

}  // namespace h3
