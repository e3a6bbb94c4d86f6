#include "render/rank_place.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "render/progress.h"

namespace h3 {

std::vector<RankPlace> gather_places(Communicator& communicator, const RankPlace& own) {
  const nlohmann::json mine{own.host, own.device, own.address, own.free_memory};
  std::vector<RankPlace> places;
  for (const std::string& text : communicator.gather_text(mine.dump())) {
    const nlohmann::json place = nlohmann::json::parse(text);
    places.push_back({place[0], place[1], place[2], place[3]});
  }
  return places;
}

std::string text_of(const RankPlace& place, std::size_t rank) {
  return fmt::format("{} on {} ({}, {} free)", rank, place.host, place.device,
                     bytes_text(static_cast<double>(place.free_memory)));
}

}  // namespace h3
