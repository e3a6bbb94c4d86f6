#include "render/agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "parallel/mpi_communicator.h"

namespace h3 {

std::string build_id() {
  return hash_hex(read_file("/proc/self/exe"));
}

void together(const Cluster& cluster, const std::function<void()>& check) {
  std::string error;
  try {
    check();
  } catch (const UserError& e) {
    error = e.what();
  }
  if (cluster.size() > 1) {
    // There may be no communicator yet; this one serves the decision alone.
    const auto machine = make_cpu_machine();
    MpiCommunicator world(MPI_COMM_WORLD, *machine);
    error = first_error(world, cluster.host(), error);
  }
  if (!error.empty()) throw UserError(error);
}

namespace {

struct Difference {
  std::string field, first, other;
};

// Two different values, cut to what tells them apart.
Difference difference_of(const std::string& field, const std::string& first, const std::string& other) {
  constexpr std::size_t kBefore = 40, kShown = 200;
  const auto a = nlohmann::json::parse(first, nullptr, false), b = nlohmann::json::parse(other, nullptr, false);
  if (a.is_object() && b.is_object())
    for (const auto& [key, value] : a.items())
      if (b.value(key, nlohmann::json()) != value)
        return {field + " (" + key + ")", value.dump().substr(0, kShown),
                b.value(key, nlohmann::json()).dump().substr(0, kShown)};
  const auto at = static_cast<std::size_t>(std::mismatch(first.begin(), first.end(), other.begin(), other.end()).first -
                                           first.begin());
  const std::size_t from = at < kBefore ? 0 : at - kBefore;
  const auto shown = [&](const std::string& value) {
    return (from > 0 ? "..." : "") + (value.empty() ? "nothing" : value.substr(std::min(from, value.size()), kShown));
  };
  return {field, shown(first), shown(other)};
}

}  // namespace

void require_agreement(Communicator& communicator, const std::string& host,
                       const std::map<std::string, std::string>& facts) {
  if (communicator.size() == 1) return;
  nlohmann::json mine{{"host", host}, {"facts", facts}};
  const auto all = communicator.gather_text(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  const nlohmann::json first = nlohmann::json::parse(all.at(0));
  for (std::size_t r = 1; r < all.size(); ++r) {
    const nlohmann::json other = nlohmann::json::parse(all[r]);
    for (const auto& [field, value] : first["facts"].items()) {
      const std::string expected = value, found = other["facts"].value(field, "");
      if (found == expected) continue;
      const Difference d = difference_of(field, expected, found);
      throw UserError(fmt::format(
          "ranks disagree on {}: rank 0 on {} has {}, rank {} on {} has {}; start every rank with "
          "the same program, options, scenes and model",
          d.field, first["host"].get<std::string>(), d.first, r, other["host"].get<std::string>(), d.other));
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
