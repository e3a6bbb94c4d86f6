// One object of a JSON configuration file, read strictly: every key is asked for by name and type, and what nobody
// asked for is an error that suggests the nearest known key. Every error names file, field, value and what would be
// right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

// Parses JSON; duplicate keys, nesting beyond `max_depth` and everything after the value are UserErrors naming `where`.
nlohmann::json parse_json_strictly(std::string_view text, const std::string& where, int max_depth = 16);

// The beginning of a value as it may stand in a message: ASCII, at most 60 characters.
std::string shown(const nlohmann::json& value);

class ConfigObject {
 public:
  // The object that the file holds. UserError when the file is missing or not a JSON object.
  static ConfigObject read(const std::filesystem::path& file);
  // `path` is the field that holds the object within `file` ("" at the top).
  ConfigObject(std::string file, std::string path, nlohmann::json object);

  const std::string& file() const { return file_; }
  // "text_config.hidden_size", the name that errors carry.
  std::string field(std::string_view key) const;
  bool has(std::string_view key) const;

  // Required fields of one type within limits.
  std::int64_t integer(const std::string& key, std::int64_t low = 1, std::int64_t high = 1 << 24);
  double number(const std::string& key);  // positive
  std::string text(const std::string& key);
  std::vector<std::int64_t> integers(const std::string& key,
                                     std::size_t count = 0);  // positive; count 0: any, not empty
  std::vector<float> floats(const std::string& key, std::size_t count);
  std::vector<std::vector<std::int64_t>> integer_lists(const std::string& key);
  ConfigObject object(const std::string& key);
  nlohmann::json raw(const std::string& key);
  // Optional fields.
  std::int64_t integer_or(const std::string& key, std::int64_t fallback);
  double number_or(const std::string& key, double fallback);
  // The field has this value (or, with `optional`, is absent): another value asks for something the program lacks.
  void require(const std::string& key, const nlohmann::json& value);
  void allow(const std::string& key, const nlohmann::json& value);
  // Fields that say nothing about what is computed.
  void ignore(std::initializer_list<const char*> keys);
  // UserError for the first field that no call above named. Keys that begin with "_" are comments of their writers.
  void finish() const;

  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

 private:
  const nlohmann::json& at(const std::string& key);
  std::vector<std::int64_t> integers_of(const nlohmann::json& list, const std::string& key) const;
  std::string file_, path_;
  nlohmann::json object_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace h3
