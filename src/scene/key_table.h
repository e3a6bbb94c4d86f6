// A table of keys for a record of type T: how each is read, written and explained. The factories below make rows for
// the common kinds of members, so that a table reads like its own documentation.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "scene/json_field.h"

namespace h3 {

template <typename T>
struct Key {
  std::string_view name;
  std::string type;
  std::string help;
  std::function<void(T&, const JsonField&)> read;
  std::function<void(const T&, Json&, FileNames)> write;  // sets nothing where the member is unset
  std::string unset;                                      // what holds where the key is absent, if no default does
  bool is_text = false;                                   // an override's value is taken as it is
};

template <typename T>
Key<T> flag_key(std::string_view name, bool T::*member, std::string help) {
  return {name,
          "true or false",
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.flag(); },
          [=](const T& t, Json& j, FileNames) { j = t.*member; },
          "",
          false};
}

template <typename T>
Key<T> count_key(std::string_view name, std::int64_t T::*member, std::int64_t low, std::int64_t high,
                 std::string help) {
  return {name,
          fmt::format("{} to {}", low, high),
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.count(low, high); },
          [=](const T& t, Json& j, FileNames) { j = t.*member; },
          "",
          false};
}

template <typename T, typename E>
Key<T> choice_key(std::string_view name, E T::*member, std::string help) {
  return {name,
          choice_list<E>(),
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.template choice<E>(); },
          [=](const T& t, Json& j, FileNames) { j = name_of(t.*member); },
          "",
          true};
}

template <typename T>
Key<T> text_key(std::string_view name, std::string T::*member, std::string help, std::string unset = "") {
  return {name,
          "text",
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.text(); },
          [=](const T& t, Json& j, FileNames) {
            if (!(t.*member).empty()) j = t.*member;
          },
          std::move(unset),
          true};
}

template <typename T>
Key<T> whole_key(std::string_view name, std::optional<std::int64_t> T::*member, std::string type, std::string unset,
                 std::string help) {
  return {name,
          type,
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.whole(type); },
          [=](const T& t, Json& j, FileNames) {
            if (t.*member) j = *(t.*member);
          },
          std::move(unset),
          false};
}

template <typename T>
Key<T> positive_key(std::string_view name, std::optional<double> T::*member, std::string unset, std::string help) {
  return {name,
          "number above 0",
          std::move(help),
          [=](T& t, const JsonField& f) { t.*member = f.positive(); },
          [=](const T& t, Json& j, FileNames) {
            if (t.*member) j = *(t.*member);
          },
          std::move(unset),
          false};
}

template <typename T>
std::vector<std::string_view> key_names(const std::vector<Key<T>>& keys) {
  std::vector<std::string_view> names;
  for (const Key<T>& key : keys) names.push_back(key.name);
  return names;
}

template <typename T>
const Key<T>* find_key(const std::vector<Key<T>>& keys, std::string_view name) {
  for (const Key<T>& key : keys)
    if (key.name == name) return &key;
  return nullptr;
}

// All set members as an object, in the order of the table.
template <typename T>
Json write_keys(const std::vector<Key<T>>& keys, const T& record, FileNames names) {
  Json object = Json::object();
  for (const Key<T>& key : keys) {
    Json value;
    key.write(record, value, names);
    if (!value.is_null()) object[std::string(key.name)] = std::move(value);
  }
  return object;
}

}  // namespace h3
