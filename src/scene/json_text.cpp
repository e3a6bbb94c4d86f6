#include "scene/json_text.h"

#include <set>
#include <vector>

#include "base/error.h"
#include "scene/utf8.h"

namespace h3 {

namespace {

constexpr std::size_t deepest = 32;

// Builds the document while the parser reads, so that a key given twice is seen before it overwrites anything.
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(const std::string& where) : where_(where) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (!open_.back().keys.insert(value).second)
      throw UserError(where_, printable(path_to(value)), "", "is given twice; every key may stand once");
    open_.back().key = value;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    const std::string text = e.what();
    const std::size_t bracket = text.find("] ");
    throw UserError(where_, "", "",
                    "is not valid JSON: " + printable(bracket == text.npos ? text : text.substr(bracket + 2), 300));
  }

 private:
  struct Level {
    Json* value;
    std::set<std::string> keys;
    std::string key;
  };

  std::string path_to(const std::string& key) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      if (open_[i].value->is_object()) path += open_[i].key + ".";
    return path + key;
  }

  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = open_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    return &((*level.value)[level.key] = std::move(value));
  }

  template <typename T>
  bool put(T&& value) {
    add(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == deepest)
      throw UserError(where_, "", "", fmt::format("is nested more than {} levels deep", deepest));
    open_.push_back({add(std::move(value)), {}, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  Json root_;
  std::vector<Level> open_;
};

}  // namespace

std::string_view checked_utf8(std::string_view text, const std::string& where) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw UserError(where, "", "", "is UTF-16; save it as UTF-8");
  if (const auto offset = first_invalid_utf8(text))
    throw UserError(where, "", "",
                    fmt::format("is not valid UTF-8: byte 0x{:02x} at offset {}",
                                static_cast<unsigned>(static_cast<unsigned char>(text[*offset])), *offset));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

Json parse_json(std::string_view text, const std::string& where) {
  StrictBuilder builder(where);
  Json::sax_parse(checked_utf8(text, where), &builder);
  return builder.take();
}

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace h3
