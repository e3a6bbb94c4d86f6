#include "render/scene_encodings.h"

#include <algorithm>

#include "base/log.h"

namespace h3 {

namespace {

using Part = SceneEncodings::Part;
using Json = nlohmann::ordered_json;

std::string_view kind_of(Part part) {
  return part == Part::text ? "text" : part == Part::pictures ? "pictures" : "sound";
}

}  // namespace

SceneEncodings::SceneEncodings(Session& session, const SceneJob& job, const Presentation& presentation,
                               StageTimes& times)
    : session_(session), job_(job), times_(times), keys_(session, job) {
  const auto wish = [&](Part part, std::size_t item, std::string what, std::int64_t rows) {
    Wish w;
    w.part = part;
    w.item = item;
    w.what = std::move(what);
    w.rows = rows;
    wishes_.push_back(std::move(w));
  };
  wish(Part::text, 0, "text", presentation.rows());
  for (std::size_t i = 0; i < job.media.size(); ++i) {
    const MediaItem& item = job.media[i];
    const bool both = item.encoded_frames > 0 && item.audio_latents > 0;
    if (item.encoded_frames > 0) wish(Part::pictures, i, item.field, item.visual_rows());
    if (item.audio_latents > 0) wish(Part::sound, i, item.field + (both ? " (sound)" : ""), item.audio_rows());
  }
  if (session.options().cache == "off") return;
  StageTimer timer(times_, "cache");
  if (session.first()) look_up(presentation);
  share();
  if (session.first()) tell();
}

SceneEncodings::Wish* SceneEncodings::find(Part part, std::size_t item) {
  const auto found =
      std::find_if(wishes_.begin(), wishes_.end(), [&](const Wish& w) { return w.part == part && w.item == item; });
  return found == wishes_.end() ? nullptr : &*found;
}

const SceneEncodings::Wish* SceneEncodings::find(Part part, std::size_t item) const {
  return const_cast<SceneEncodings*>(this)->find(part, item);
}

const HostArray* SceneEncodings::known(Part part, std::size_t item) const {
  const Wish* wish = find(part, item);
  if (wish && wish->same_as) wish = &wishes_[*wish->same_as];
  if (!wish) return nullptr;
  return wish->hit ? &wish->hit->value : wish->value ? &*wish->value : nullptr;
}

bool SceneEncodings::knows(std::size_t item) const {
  return std::all_of(wishes_.begin(), wishes_.end(),
                     [&](const Wish& w) { return w.part == Part::text || w.item != item || is_known(w); });
}

std::vector<bool> SceneEncodings::items_to_read() const {
  const bool shown = !is_known(wishes_.front());
  std::vector<bool> read(job_.media.size());
  for (std::size_t i = 0; i < read.size(); ++i) read[i] = !knows(i) || (shown && is_shown(job_.media[i]));
  return read;
}

void SceneEncodings::look_up(const Presentation& presentation) {
  for (std::size_t i = 0; i < wishes_.size(); ++i) {
    Wish& wish = wishes_[i];
    wish.key = wish.part == Part::text       ? keys_.text(presentation)
               : wish.part == Part::pictures ? keys_.pictures(job_.media[wish.item])
                                             : keys_.sound(job_.media[wish.item]);
    for (std::size_t j = 0; j < i && !wish.same_as; ++j)
      if (wishes_[j].key == wish.key) wish.same_as = j;
    if (wish.same_as) continue;
    if (const auto found = session_.cache()->find(wish.key)) {
      wish.hit = found->entry;
      wish.lock = found->lock;
      wish.from = found->from;
    }
  }
}

// What the first rank found, on every rank.
void SceneEncodings::share() {
  Json list = Json::array();
  for (const Wish& wish : wishes_) {
    Json one = Json::object();
    if (wish.same_as) one["same_as"] = *wish.same_as;
    if (wish.hit)
      one.update({{"shape", wish.hit->value.shape},
                  {"dtype", static_cast<int>(wish.hit->value.dtype)},
                  {"seconds", wish.hit->facts.seconds},
                  {"from", wish.from}});
    list.push_back(one);
  }
  list = Json::parse(session_.communicator().broadcast_text(list.dump()));
  for (std::size_t i = 0; i < wishes_.size(); ++i) {
    Wish& wish = wishes_[i];
    const Json& one = list[i];
    if (one.contains("same_as")) {
      wish.same_as = one["same_as"].get<std::size_t>();
      wishes_[*wish.same_as].repeated = true;
    }
    if (!one.contains("shape")) continue;
    if (!session_.first()) {
      auto entry = std::make_shared<CacheEntry>();
      entry->facts.seconds = one["seconds"];
      entry->value.dtype = static_cast<DType>(one["dtype"].get<int>());
      entry->value.shape = one["shape"].get<std::vector<std::int64_t>>();
      entry->value.bytes.resize(static_cast<std::size_t>(entry->value.count()) * size_of(entry->value.dtype));
      wish.hit = entry;
      wish.from = one["from"];
    }
    // The first rank only sends.
    const HostArray& value = wish.hit->value;
    const Tensor tensor(const_cast<std::byte*>(value.bytes.data()), {value.count()}, value.dtype);
    if (value.count() > 0) session_.communicator().broadcast(session_.queue(), tensor, 0);
  }
}

void SceneEncodings::tell() const {
  for (const Wish& wish : wishes_) {
    if (wish.same_as)
      spdlog::info("cache: {}: the same as {}", wish.what, wishes_[*wish.same_as].what);
    else if (wish.hit)
      spdlog::info("cache: {}: hit, {} rows from {}, {:.3f} s of encoding saved", wish.what, wish.rows, wish.from,
                   wish.hit->facts.seconds);
    else
      spdlog::info("cache: {}: miss, {} rows", wish.what, wish.rows);
  }
}

bool SceneEncodings::files_unchanged(const Wish& wish) const {
  if (wish.part == Part::text) return keys_.shown_unchanged();
  const MediaItem& item = job_.media[wish.item];
  return keys_.unchanged(wish.part == Part::pictures ? item.picture : item.sound);
}

void SceneEncodings::made(Part part, std::size_t item, const void* value, DType dtype,
                          const std::vector<std::int64_t>& shape, double seconds) {
  if (session_.options().cache == "off") return;
  StageTimer timer(times_, "cache");
  Wish& wish = *find(part, item);
  if (wish.repeated) wish.value = HostArray::copy_of(value, dtype, shape);
  if (!session_.first() || !files_unchanged(wish)) return;
  CacheEntry entry{{wish.key, std::string(kind_of(part)), wish.rows, seconds}, HostArray::copy_of(value, dtype, shape)};
  session_.cache()->keep(std::move(entry));
}

Json SceneEncodings::report() const {
  Json list = Json::array();
  for (const Wish& wish : wishes_) {
    Json one{{"what", wish.what}, {"outcome", is_known(wish) ? "hit" : "miss"}, {"rows", wish.rows}};
    if (wish.same_as) one["from"] = "this scene";
    if (wish.hit) {
      one["from"] = wish.from;
      one["seconds_saved"] = wish.hit->facts.seconds;
    }
    list.push_back(one);
  }
  return list;
}

}  // namespace h3
