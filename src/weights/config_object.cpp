#include "weights/config_object.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"

namespace h3 {

using nlohmann::json;

std::string shown(const json& value) {
  return value.dump(-1, ' ', true).substr(0, 60);
}

// The parser quotes what it read, which may be long and not even UTF-8.
static std::string parser_message(const char* what) {
  std::string text = std::string(what).substr(0, 200);
  for (char& c : text)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return text;
}

json parse_json_strictly(std::string_view text, const std::string& where, int max_depth) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) throw UserError(where, "", "", fmt::format("JSON nested deeper than {} levels", max_depth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw UserError(where, parsed.get<std::string>(), "", "the key stands twice");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& e) {
    throw UserError(where, "", "", fmt::format("not valid JSON: {}", parser_message(e.what())));
  }
}

ConfigObject ConfigObject::read(const std::filesystem::path& file) {
  return {file.string(), "", parse_json_strictly(read_file(file), file.string())};
}

ConfigObject::ConfigObject(std::string file, std::string path, json object)
    : file_(std::move(file)), path_(std::move(path)), object_(std::move(object)) {
  if (!object_.is_object()) throw UserError(file_, path_, shown(object_), "expected a JSON object");
}

std::string ConfigObject::field(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

bool ConfigObject::has(std::string_view key) const {
  const auto it = object_.find(key);
  return it != object_.end() && !it->is_null();
}

void ConfigObject::fail(const std::string& key, const std::string& expected) const {
  const auto it = object_.find(key);
  throw UserError(file_, field(key), it == object_.end() ? "missing" : shown(*it), expected);
}

const json& ConfigObject::at(const std::string& key) {
  known_.insert(key);
  const auto it = object_.find(key);
  if (it == object_.end()) throw UserError(file_, field(key), "", "the field is missing");
  return *it;
}

std::int64_t ConfigObject::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  const json& v = at(key);
  const bool fits = v.is_number_integer() && (v.is_number_unsigned() ? v.get<std::uint64_t>() <= INT64_MAX : true);
  if (!fits || v.get<std::int64_t>() < low || v.get<std::int64_t>() > high)
    fail(key, fmt::format("expected an integer from {} to {}", low, high));
  return v.get<std::int64_t>();
}

double ConfigObject::number(const std::string& key) {
  const json& v = at(key);
  if (!v.is_number() || !std::isfinite(v.get<double>()) || v.get<double>() <= 0)
    fail(key, "expected a positive number");
  return v.get<double>();
}

std::string ConfigObject::text(const std::string& key) {
  const json& v = at(key);
  if (!v.is_string()) fail(key, "expected text");
  return v.get<std::string>();
}

std::vector<std::int64_t> ConfigObject::integers_of(const json& list, const std::string& key) const {
  if (!list.is_array() || list.empty()) fail(key, "expected a list of integers");
  std::vector<std::int64_t> values;
  for (const json& v : list) {
    if (!v.is_number_integer() || v.get<std::int64_t>() < 0 || v.get<std::int64_t>() > (1 << 24))
      fail(key, "expected a list of integers from 0 to 16777216");
    values.push_back(v.get<std::int64_t>());
  }
  return values;
}

std::vector<std::int64_t> ConfigObject::integers(const std::string& key, std::size_t count) {
  std::vector<std::int64_t> values = integers_of(at(key), key);
  if (count != 0 && values.size() != count) fail(key, fmt::format("has {} entries, expected {}", values.size(), count));
  return values;
}

std::vector<float> ConfigObject::floats(const std::string& key, std::size_t count) {
  const json& list = at(key);
  if (!list.is_array()) fail(key, "expected a list of numbers");
  if (list.size() != count)
    throw UserError(file_, field(key), fmt::format("{} entries", list.size()), fmt::format("expected {}", count));
  std::vector<float> values;
  for (const json& v : list) {
    if (!v.is_number() || !std::isfinite(v.get<float>())) fail(key, "expected a list of finite numbers");
    values.push_back(v.get<float>());
  }
  return values;
}

std::vector<std::vector<std::int64_t>> ConfigObject::integer_lists(const std::string& key) {
  const json& lists = at(key);
  if (!lists.is_array() || lists.empty()) fail(key, "expected a list of lists of integers");
  std::vector<std::vector<std::int64_t>> values;
  for (const json& list : lists) values.push_back(integers_of(list, key));
  return values;
}

ConfigObject ConfigObject::object(const std::string& key) {
  return {file_, field(key), at(key)};
}

json ConfigObject::raw(const std::string& key) {
  return at(key);
}

std::int64_t ConfigObject::integer_or(const std::string& key, std::int64_t fallback) {
  known_.insert(key);
  return has(key) ? integer(key) : fallback;
}

double ConfigObject::number_or(const std::string& key, double fallback) {
  known_.insert(key);
  return has(key) ? number(key) : fallback;
}

void ConfigObject::require(const std::string& key, const json& value) {
  if (at(key) != value) fail(key, "this program knows only " + shown(value));
}

void ConfigObject::allow(const std::string& key, const json& value) {
  known_.insert(key);
  if (has(key)) require(key, value);
}

void ConfigObject::ignore(std::initializer_list<const char*> keys) {
  known_.insert(keys.begin(), keys.end());
}

void ConfigObject::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (key.starts_with("_") || known_.contains(key)) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    throw UserError(file_, field(key), shown(value), "unknown field" + did_you_mean(key, names));
  }
}

}  // namespace h3
