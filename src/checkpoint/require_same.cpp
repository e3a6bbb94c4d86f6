#include "checkpoint/require_same.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {

namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json* value) {
  constexpr std::size_t kLongest = 160;
  if (!value) return "(none)";
  std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

const Json* member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

class Comparison {
 public:
  explicit Comparison(std::span<const std::string> ignored) : ignored_(ignored) {}

  std::optional<JsonDifference> values(const std::string& key, const Json* a, const Json* b) const {
    if (std::find(ignored_.begin(), ignored_.end(), key) != ignored_.end()) return std::nullopt;
    if (a && b && a->is_object() && b->is_object()) return objects(key, *a, *b);
    if (a && b && a->is_array() && b->is_array()) return arrays(key, *a, *b);
    if (a && b && *a == *b) return std::nullopt;
    return JsonDifference{key, shown(a), shown(b)};
  }

 private:
  std::optional<JsonDifference> objects(const std::string& key, const Json& a, const Json& b) const {
    const std::string prefix = key.empty() ? "" : key + ".";
    for (const auto& [name, value] : a.items())
      if (auto difference = values(prefix + name, &value, member(b, name))) return difference;
    for (const auto& [name, value] : b.items())
      if (!a.contains(name))
        if (auto difference = values(prefix + name, nullptr, &value)) return difference;
    return std::nullopt;
  }

  std::optional<JsonDifference> arrays(const std::string& key, const Json& a, const Json& b) const {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const Json* x = i < a.size() ? &a[i] : nullptr;
      const Json* y = i < b.size() ? &b[i] : nullptr;
      if (auto difference = values(fmt::format("{}[{}]", key, i), x, y)) return difference;
    }
    return std::nullopt;
  }

  std::span<const std::string> ignored_;
};

}  // namespace

std::optional<JsonDifference> first_difference(const Json& expected, const Json& found,
                                               std::span<const std::string> ignored) {
  return Comparison(ignored).values("", &expected, &found);
}

void require_same(const Json& expected, const Json& found, const std::string& where,
                  std::span<const std::string> ignored) {
  const auto difference = first_difference(expected, found, ignored);
  if (!difference) return;
  throw UserError(where, difference->key, difference->found,
                  fmt::format("this run has {}; undo the change, render into another folder or under another name, or "
                              "start the scene over",
                              difference->expected));
}

}  // namespace h3
